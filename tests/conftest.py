# SPDX-License-Identifier: MIT
def pytest_configure(config):
    config.addinivalue_line("markers", "smoke: one of the few that `make check` runs; shares its module's daemon, takes a second")
