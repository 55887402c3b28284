/* SPDX-License-Identifier: MIT */
/* What the containers that run here have, and what that means for them once they are adopted. */
#include <fcntl.h>
#include <linux/capability.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "cli/engine.h"
#include "cli/features.h"
#include "cli/output.h"
#include "containers/container_find.h"

static const struct {
	unsigned cap;
	const char *means;
} risky[] = {
	{ CAP_SYS_ADMIN, "CAP_SYS_ADMIN: on the host (privileged) it can remove the gate" },
	{ CAP_BPF, "CAP_BPF: on the host (privileged) it can remove the gate" },
	{ CAP_NET_ADMIN, "CAP_NET_ADMIN: it can have the kernel forward what no socket sends (a tunnel, a tap)" },
	{ CAP_NET_RAW,
	  "CAP_NET_RAW: it can send frames past the gate (PACKET_QDISC_BYPASS); start it with --cap-drop NET_RAW" },
};

/* The capabilities that its first process can have. */
static bool caps_read(const char *path, unsigned long long *ret)
{
	_free_ char *procs = NULL, *status = NULL;
	char file[FS_PATH_SIZE];
	const char *line;
	long pid;

	if (fs_path(file, "%s/cgroup.procs", path) < 0 || fs_read_at(AT_FDCWD, file, 1u << 20, &procs) < 0)
		return false;
	pid = strtol(procs, NULL, 10);
	if (pid <= 0 || fs_path(file, "/proc/%ld/status", pid) < 0 || fs_read_at(AT_FDCWD, file, 65536, &status) < 0)
		return false;
	line = strstr(status, "\nCapBnd:");
	if (!line)
		return false;
	*ret = strtoull(line + strlen("\nCapBnd:"), NULL, 16);
	return true;
}

void container_risks(const char *path, char *ret, size_t size)
{
	unsigned long long caps = 0;
	size_t len = 0;

	*ret = '\0';
	if (!caps_read(path, &caps))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(risky) && len < size; i++)
		if (caps >> risky[i].cap & 1)
			len += (size_t)snprintf(ret + len, size - len, "%s%.*s", len ? "," : "",
						(int)strcspn(risky[i].means, ":"), risky[i].means);
}

void container_warn(const char *path)
{
	struct container container;
	unsigned long long caps;

	if (!container_of_path(path, &container) || !caps_read(path, &caps))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(risky); i++)
		if (caps >> risky[i].cap & 1)
			output_clean_line(stderr, "netpawl: attached, but it has %s", risky[i].means);
}

static int container_add(void *data, const char *path, const struct container *container)
{
	struct table *table = data;
	unsigned long long caps;
	bool fine = true;

	if (!caps_read(path, &caps))
		return 0; /* nobody is in it, or in cgroups below it alone */
	for (size_t i = 0; i < ARRAY_SIZE(risky); i++) {
		if (!(caps >> risky[i].cap & 1))
			continue;
		table_add(table, container->id, container->engine ?: "-", risky[i].means);
		fine = false;
	}
	if (fine)
		table_add(table, container->id, container->engine ?: "-", "nothing is in the way of its adoption");
	return 0;
}

/* -- engines --------------------------------------------------------------------------------- */

static void engine_add(struct table *table, const char *engine)
{
	struct engine_setup setup;
	int r = engine_info(engine, &setup);

	if (r == -ENOENT)
		return;
	if (r < 0) {
		table_add(table, engine, "-",
			  "it does not answer: attach its containers by their id, names are not found");
		return;
	}
	table_add(table, engine, setup.driver,
		  !strcmp(setup.driver, "systemd")
			  ? "by hand, its containers' parent is the slice that netpawl parent --systemd prints"
			  : "by hand, its containers' parent is what netpawl parent prints");
	if (!setup.v2)
		table_add(table, engine, "cgroup v1",
			  "its limits are there; a container is attached by its cgroup v2 beside it, which this host "
			  "must have");
}

/* Where Podman and CRI-O look for hooks. */
static void hook_add(struct table *table)
{
	static const char *const places[] = { "/usr/share/containers/oci/hooks.d/netpawl.json",
					      "/usr/local/share/containers/oci/hooks.d/netpawl.json",
					      "/etc/containers/oci/hooks.d/netpawl.json" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (access(places[i], F_OK) == 0) {
			table_add(table, "OCI hook", "yes",
				  "containers with the annotation netpawl.dev/session are confined before they start");
			return;
		}
	table_add(table, "OCI hook", "no",
		  "the annotation netpawl.dev/session says nothing to engines: make install PREFIX=/usr puts "
		  "netpawl.json there");
}

static void engines_print(void)
{
	_table_ struct table table = { .columns = 3, .heading = true };

	table_add(&table, "ENGINE", "HERE", "WHAT IT MEANS");
	engine_add(&table, "docker");
	engine_add(&table, "podman");
	if (table.used <= 3)
		return;
	hook_add(&table);
	fputc('\n', stdout);
	table_print(&table, stdout);
}

void doctor_containers(void)
{
	_table_ struct table table = { .columns = 3, .heading = true };

	engines_print();
	table_add(&table, "CONTAINER", "ENGINE", "WHAT IT MEANS");
	containers_each(container_add, &table);
	if (table.used <= 3)
		return;
	fputc('\n', stdout);
	table_print(&table, stdout);
}
