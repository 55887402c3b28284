/* SPDX-License-Identifier: MIT */
/* What the kernel side says about itself. */
#include "base/exposition.h"
#include "base/fs.h"
#include "base/json.h"
#include "kernel/internal.h"
#include "vocab/words.h"

#define MAP_COUNTED 4096 /* entries of one map that are counted */

/* The sum over processors of an entry; 0 when there is none. values has room for n of them. */
static uint64_t count_sum(int fd, const void *key, __u64 *values, int n)
{
	uint64_t sum = 0;

	if (bpf_map_lookup_elem(fd, key, values) < 0)
		return 0;
	for (int i = 0; i < n; i++)
		sum += values[i];
	return sum;
}

static void describe_counts(struct kernel *kernel, struct buf *out)
{
	int n = libbpf_num_possible_cpus(), fd = bpf_map__fd(kernel->skel->maps.np_counts);
	_free_ __u64 *values = n > 0 ? calloc((size_t)n, sizeof(*values)) : NULL;

	json_open_object(out, "refused");
	for (__u32 reason = 0; values && reason < NP_REASON_COUNT; reason++) {
		uint64_t sum = NP_REASON_REFUSES(reason) ? count_sum(fd, &reason, values, n) : 0;

		if (sum)
			json_put_number(out, reason_token(reason), sum);
	}
	json_close_object(out);
}

static void describe_errors(struct kernel *kernel, struct buf *out)
{
	int n = libbpf_num_possible_cpus(), fd = bpf_map__fd(kernel->skel->maps.np_errors);
	_free_ __u64 *values = n > 0 ? calloc((size_t)n, sizeof(*values)) : NULL;
	struct np_error_key key, *previous = NULL;

	json_open_array(out, "helper_errors");
	while (values && bpf_map_get_next_key(fd, previous, &key) == 0) {
		uint64_t sum = count_sum(fd, &key, values, n);

		previous = &key;
		if (!sum)
			continue;
		json_open_object(out, NULL);
		json_put_number(out, "place", (uint64_t)key.place);
		json_put_number(out, "errno", (uint64_t)-key.error);
		json_put_number(out, "count", sum);
		json_close_object(out);
	}
	json_close_array(out);
}

void kernel_describe(struct kernel *kernel, struct buf *out)
{
	json_put_text(out, "cgroup", kernel->slice.path, FS_PATH_SIZE);
	json_put_text(out, "pins", kernel->pins, FS_PATH_SIZE);
	json_put_number(out, "devices", kernel->devices);
	describe_counts(kernel, out);
	describe_errors(kernel, out);
	json_put_number(out, "cut_late", kernel->lists.missed);
	features_describe(&kernel->features, out);
}

/* How many entries a map has, up to a bound: it is asked for them one by one. */
static unsigned entries_count(int fd, const struct bpf_map_info *info)
{
	_free_ char *key = calloc(2, info->key_size + 1);
	char *next = key ? key + info->key_size + 1 : NULL;
	unsigned n = 0;

	while (key && n < MAP_COUNTED && bpf_map_get_next_key(fd, n ? key : NULL, next) == 0) {
		memcpy(key, next, info->key_size);
		n++;
	}
	return n;
}

static bool map_is_counted(const struct bpf_map_info *info)
{
	return info->type == BPF_MAP_TYPE_HASH || info->type == BPF_MAP_TYPE_LRU_HASH ||
	       info->type == BPF_MAP_TYPE_PERCPU_HASH || info->type == BPF_MAP_TYPE_LPM_TRIE ||
	       info->type == BPF_MAP_TYPE_HASH_OF_MAPS;
}

void kernel_node(struct kernel *kernel, struct buf *out)
{
	struct bpf_map *map;

	json_open_array(out, "maps");
	bpf_object__for_each_map(map, kernel->skel->obj) {
		struct bpf_map_info info = { 0 };
		__u32 size = sizeof(info);
		unsigned n;

		if (bpf_obj_get_info_by_fd(bpf_map__fd(map), &info, &size) < 0 || !map_is_counted(&info))
			continue;
		n = entries_count(bpf_map__fd(map), &info);
		json_open_object(out, NULL);
		json_put_text(out, "map", info.name, sizeof(info.name));
		json_put_number(out, "entries", n);
		json_put_bool(out, "more", n == MAP_COUNTED);
		json_put_number(out, "most", info.max_entries);
		json_close_object(out);
	}
	json_close_array(out);
	json_open_array(out, "programs");
	for (size_t i = 0; i < kernel->n_programs; i++) {
		struct bpf_prog_info info = { 0 };
		__u32 size = sizeof(info);

		if (bpf_obj_get_info_by_fd(kernel->programs[i].fd, &info, &size) < 0)
			continue;
		json_open_object(out, NULL);
		/* The kernel's own names of programs are cut, so that some are the same. */
		json_put_text(out, "program", bpf_program__name(kernel->programs[i].prog), SIZE_MAX);
		json_put_number(out, "runs", info.run_cnt);
		json_put_number(out, "ns_per_run", info.run_cnt ? info.run_time_ns / info.run_cnt : 0);
		json_close_object(out);
	}
	json_close_array(out);
}

/* What the gate refused is in np_counts, which outlives the daemon. Its programs are counted by the kernel while
 * kernel.bpf_stats_enabled is 1. */
void kernel_metrics(struct kernel *kernel, struct buf *out)
{
	int n = libbpf_num_possible_cpus(), fd = bpf_map__fd(kernel->skel->maps.np_counts);
	_free_ __u64 *values = n > 0 ? calloc((size_t)n, sizeof(*values)) : NULL;
	struct bpf_prog_info infos[PROGRAMS_MAX] = { 0 };

	for (__u32 reason = 0; values && reason < NP_REASON_COUNT; reason++) {
		uint64_t sum = NP_REASON_REFUSES(reason) ? count_sum(fd, &reason, values, n) : 0;

		if (sum)
			metric_put(out, "netpawl_refusals_total", sum, "layer", "gate", "reason", reason_token(reason),
				   NULL);
	}
	metric_family(out, "netpawl_cut_late_total", METRIC_COUNTER,
		      "Open connections that a cut had missed and a later look found.");
	metric_put(out, "netpawl_cut_late_total", kernel->lists.missed, NULL);
	for (size_t i = 0; i < kernel->n_programs; i++) {
		__u32 size = sizeof(infos[i]);

		if (bpf_obj_get_info_by_fd(kernel->programs[i].fd, &infos[i], &size) < 0)
			infos[i].run_cnt = 0;
	}
	metric_family(out, "netpawl_bpf_runs_total", METRIC_COUNTER,
		      "Runs of the gate's programs, while kernel.bpf_stats_enabled is 1.");
	for (size_t i = 0; i < kernel->n_programs; i++)
		if (infos[i].run_cnt)
			metric_put(out, "netpawl_bpf_runs_total", infos[i].run_cnt, "program",
				   bpf_program__name(kernel->programs[i].prog), NULL);
	metric_family(out, "netpawl_bpf_run_seconds_total", METRIC_COUNTER,
		      "Time that these runs took; by their number it is the time of one.");
	for (size_t i = 0; i < kernel->n_programs; i++)
		if (infos[i].run_cnt)
			metric_put_seconds(out, "netpawl_bpf_run_seconds_total", infos[i].run_time_ns, "program",
					   bpf_program__name(kernel->programs[i].prog), NULL);
}

void kernel_probe(struct buf *out)
{
	struct features features;

	kernel_quiet();
	features_probe(&features);
	features_describe(&features, out);
}
