/* SPDX-License-Identifier: MIT */
/* GET /metrics on a loopback port, for Prometheus and its like. */
#pragma once

/* Until the daemon is gone. 0 or -errno. The socket is its own. */
int scrape_serve(int listener);
