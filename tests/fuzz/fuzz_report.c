/* SPDX-License-Identifier: MIT */
/* Random bytes as a report of a process 1 that a sandbox has taken over: in bounds, or none. */
#include <stdlib.h>

#include "launch/kept.c"

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int report_check(const uint8_t *data, size_t size)
{
	struct init_report report;

	if (!report_read(data, size, &report))
		return 0;
	check(size == sizeof(report) && report.kind >= REPORT_READY && report.kind <= REPORT_ENDED);
	check(report.exit_code >= 0 && report.exit_code <= 255 && report.signal >= 0 && report.signal < NSIG);
	check(strnlen(report.text, sizeof(report.text)) < sizeof(report.text) && report.error >= 0);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct init_report whole = { 0 };

	report_check(data, size);
	/* One of the right size, which the fuzzer would hardly hit: the rest of it is zeros. */
	memcpy(&whole, data, size < sizeof(whole) ? size : sizeof(whole));
	return report_check((const uint8_t *)&whole, sizeof(whole));
}
