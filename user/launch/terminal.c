/* SPDX-License-Identifier: MIT */
#include "launch/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"

int terminal_open(struct terminal *terminal, int *ret_master, int *ret_slave)
{
	_close_ int master = -1, slave = -1;
	struct winsize size = { 0 };
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &terminal->before) < 0)
		return -errno;
	ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
	if (openpty(&master, &slave, NULL, &terminal->before, &size) < 0)
		return -errno;
	if (fcntl(master, F_SETFL, O_RDWR | O_NONBLOCK) < 0 || fcntl(master, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(slave, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	raw = terminal->before;
	cfmakeraw(&raw);
	if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) < 0)
		return -errno;
	terminal->raw = true;
	*ret_master = take_fd(master);
	*ret_slave = take_fd(slave);
	return 0;
}

void terminal_resize(int master)
{
	struct winsize size;

	if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0)
		ioctl(master, TIOCSWINSZ, &size);
}

void terminal_close(struct terminal *terminal)
{
	if (terminal->raw)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->before);
	terminal->raw = false;
}
