/* SPDX-License-Identifier: MIT */
/* What netpawld is called for, and its end. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/descriptors.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "daemon/orphans.h"
#include "daemon/daemon.h"
#include "daemon/run_directory.h"
#include "kernel/cgroup.h"
#include "vocab/limits.h"

static int daemon_run(struct daemon *d)
{
	struct event ready = { .reason = NP_R_DAEMON_READY, .who = "daemon" };
	struct event stopped = { .reason = NP_R_DAEMON_STOPPED, .who = "daemon" };
	int r;

	descriptors_raise(NP_DESCRIPTORS);
	r = daemon_start(d);
	if (r < 0)
		return r;
	d->fresh = false;
	if (kernel_took_over(d->kernel))
		event_emit(d, &(struct event){ .reason = NP_R_TOOK_OVER, .who = "daemon" });
	supervisor_await(d->supervisor, 3000);
	newborns_look(d); /* containers that were started again meanwhile */
	event_emit(d, &ready);
	log_info("ready: %s/control.sock", d->options.run_dir);
	systemd_notify("READY=1");
	r = loop_run(d->loop);
	systemd_notify("STOPPING=1");
	event_emit(d, &stopped);
	return r;
}

static void daemon_free(struct daemon *d)
{
	char problem[512];

	exporters_free(d->exporters);
	server_free(d->approvals);
	server_free(d->server);
	launches_free(d->launches);
	deciders_free(d->deciders);
	notifier_free(take_ptr(d->notifier));
	service_free(d->service);
	workspaces_free(d->workspaces);
	supervisor_free(d->supervisor);
	vault_free(d->vault);
	kernel_close(d->kernel);
	if (d->fresh) /* under the locks still */
		kernel_uninstall(d->options.pin_dir, d->options.cgroup, false, problem);
	loop_free(d->loop);
	flood_free(d->flood);
	event_log_close(d->events);
	store_close(d->store);
	loaded_policy_close(&d->policy);
	cleanup_close(&d->newborns_fd);
	cleanup_close(&d->run_lock);
	cleanup_close(&d->state_lock);
}

static int daemon_uninstall(struct daemon *d)
{
	char problem[512] = "", mount[4096], path[FS_PATH_SIZE];
	int r = lock_take(d->options.run_dir, RUN_DIRECTORY_MODE, &d->run_lock);

	if (r < 0)
		return r;
	r = kernel_uninstall(d->options.pin_dir, d->options.cgroup, d->options.force, problem);
	if (r < 0)
		log_error("%s", problem[0] ? problem : strerror(-r));
	else if (cgroup_mount_find(mount) == 0 && fs_path(path, "%s/%s", mount, d->options.cgroup) == 0)
		orphans_groups(path);
	if (r == 0 && fs_path(path, "%s/kept", d->options.run_dir) == 0)
		orphans_kept(path);
	if (r == 0 && fs_path(path, "%s/cas", d->options.run_dir) == 0)
		supervisor_cas_wipe(path);
	if (r == 0)
		log_info("the gate is gone; the record of sessions stays in %s", d->options.state_dir);
	return r;
}

/* What a disk or a pipe did not take was not said. */
static int output_end(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	fputs("netpawld: cannot write to standard output\n", stderr);
	return -EIO;
}

static int daemon_probe(void)
{
	_buf_ struct buf out = BUF_INIT(64u << 10);

	json_open_object(&out, NULL);
	kernel_probe(&out);
	json_close_array(&out);
	json_close_object(&out);
	if (!buf_error(&out))
		puts(out.data);
	return buf_error(&out) ? buf_error(&out) : output_end();
}

int main(int argc, char **argv)
{
	struct daemon d = { .run_lock = -1, .state_lock = -1, .newborns_fd = -1 };
	int r;

	if (fs_stdio_fill() < 0)
		return 1;
	r = options_parse(argc, argv, &d.options);
	if (r)
		return r == 1 && output_end() < 0 ? 1 : r - 1;
	log_setup("netpawld", d.options.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	signal(SIGPIPE, SIG_IGN);
	umask(027);
	if (geteuid() != 0) {
		log_error("needs root");
		return 1;
	}
	switch (d.options.task) {
	case TASK_PROBE:
		r = daemon_probe();
		break;
	case TASK_UNINSTALL:
		r = daemon_uninstall(&d);
		break;
	case TASK_RUN:
		r = daemon_run(&d);
		break;
	}
	daemon_free(&d);
	return r < 0;
}
