/* SPDX-License-Identifier: MIT */
/* Wiring of what works in other processes (inspectors, deciders, exporters), and of the vault that they have values from. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/run_directory.h"

int daemon_vault_open(struct daemon *d)
{
	char key[FS_PATH_SIZE];
	struct vault_config config = {
		.loop = d->loop,
		.key_file = key,
		.command_uid = d->options.decider_uid,
		.on_change = on_secret,
		.data = d,
	};
	int r = fs_path(key, "%s/placeholder-key", d->options.run_dir);

	if (r == 0)
		r = vault_new(&config, &d->vault);
	if (r < 0) {
		log_error("cannot keep the values of credentials: %s", strerror(-r));
		return r;
	}
	d->policy.vault = d->vault;
	vault_policy(d->vault, d->policy.policy);
	return 0;
}

int daemon_supervisor_open(struct daemon *d)
{
	char root[FS_PATH_SIZE], names[FS_PATH_SIZE], cas[FS_PATH_SIZE], ledgers[FS_PATH_SIZE];
	struct supervisor_config config = {
		.loop = d->loop,
		.kernel = d->kernel,
		.count = d->options.inspectors >= 0 ? (unsigned)d->options.inspectors : cpus_count(),
		.uid = d->options.inspector_uid,
		.root = root,
		.names = names,
		.cas = cas,
		.roots = d->options.roots,
		.resolvers = d->options.resolvers,
		.secrets = vault_secrets(d->vault),
		.placeholder_key = vault_placeholder_key(d->vault),
		.ledgers = { .dir = ledgers,
			     .on_report = on_report,
			     .on_lost = on_lost,
			     .on_suppressed = on_suppressed,
			     .last_seq = last_seq },
		.on_finished = on_finished,
		.on_debug = on_debug,
		.on_ask = on_ask,
		.on_asks_lost = on_asks_lost,
		.on_leak = on_leak,
		.data = d,
	};
	int r = fs_path(root, "%s/empty", d->options.run_dir);

	if (r == 0)
		r = fs_path(names, "%s/names", d->options.run_dir);
	if (r == 0)
		r = fs_path(cas, "%s/cas", d->options.run_dir);
	if (r == 0)
		r = fs_path(ledgers, "%s/ledgers", d->options.run_dir);
	if (r == 0)
		r = supervisor_new(&config, &d->policy.record, &d->policy.proxy_logins, &d->supervisor);
	if (r < 0)
		log_error("cannot start the inspector: %s", strerror(-r));
	return r;
}

int daemon_deciders_open(struct daemon *d)
{
	char root[FS_PATH_SIZE];
	struct deciders_config config = {
		.loop = d->loop,
		.kernel = d->kernel,
		.uid = d->options.inspector_uid,
		.command_uid = d->options.decider_uid,
		.root = root,
		.on_decision = on_decision,
		.data = d,
	};
	int r = fs_path(root, "%s/empty", d->options.run_dir);

	if (r == 0)
		r = deciders_new(&config, &d->deciders);
	if (r == 0)
		r = notifier_new(&(struct notifier_config){ d->loop, d->kernel, d->options.decider_uid }, &d->notifier);
	if (r < 0)
		log_error("cannot start deciders: %s", strerror(-r));
	return r;
}

static int export_lend(void *data, unsigned uid)
{
	const struct daemon *d = data;

	return server_lend(d->server, uid);
}

/* Is what is written to standard error an entry of the journal? So systemd tells its services. */
static bool under_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat st;
	char name[64];

	if (!stream || fstat(STDERR_FILENO, &st) < 0)
		return false;
	snprintf(name, sizeof(name), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return !strcmp(stream, name);
}

int daemon_exporters_open(struct daemon *d)
{
	char root[FS_PATH_SIZE], dir[FS_PATH_SIZE];
	struct exporters_config config = {
		.loop = d->loop,
		.uid = d->options.exporter_uid,
		.root = root,
		.dir = dir,
		.journal = under_journal() ? NP_JOURNAL_SOCKET : NULL,
		.lend = export_lend,
		.data = d,
	};
	int r = fs_path(root, "%s/empty", d->options.run_dir);

	if (r == 0)
		r = fs_path(dir, "%s/exports", d->options.state_dir);
	if (r == 0)
		r = exporters_new(&config, &d->exporters);
	if (r < 0)
		log_error("%s/exports: %s", d->options.state_dir, strerror(-r));
	return r;
}
