/* SPDX-License-Identifier: MIT */
/*
 * The channel's TLS. OpenSSL reads through a BIO of ours, straight from the socket into its own buffer, and writes
 * into the channel's queue, which takes everything: it never waits for room, so there is nothing to repeat later.
 */
#include <errno.h>
#include <openssl/err.h>
#include <string.h>

#include "net/channel_internal.h"
#include "vocab/limits.h"

#define READ_AHEAD  (32u << 10)		  /* one recv(): two full records. Held only while a record is incomplete */
#define REPLIES_MAX (2 * NP_BACKLOG_HIGH) /* a peer that makes TLS answer and reads nothing is read no further */

/* Walks sixteen slots when it need not: the queue is empty but for a failure. */
static void errors_clear(void)
{
	if (ERR_peek_error())
		ERR_clear_error();
}

static int bio_write(BIO *bio, const char *data, size_t len, size_t *written)
{
	struct channel *c = BIO_get_data(bio);
	size_t sent = 0;

	BIO_clear_retry_flags(bio);
	*written = len;
	if (c->direct && c->out.len == 0)
		sent = channel_send(c, &(struct iovec){ (void *)data, len }, 1);
	return queue_add(&c->out, data + sent, len - sent) == 0;
}

static int bio_read(BIO *bio, char *data, size_t len, size_t *got)
{
	struct channel *c = BIO_get_data(bio);
	ssize_t n;

	BIO_clear_retry_flags(bio);
	if (c->first.len > 0) {
		*got = len < c->first.len ? len : c->first.len;
		memcpy(data, c->first.data + c->first.at, *got);
		c->first.at += *got;
		c->first.len -= *got;
		if (c->first.len == 0)
			leftover_clear(&c->first);
		return 1;
	}
	n = c->out.len > REPLIES_MAX ? -EAGAIN : channel_recv(c, data, len);
	if (n > 0) {
		*got = (size_t)n;
		return 1;
	}
	*got = 0;
	if (n == -EAGAIN)
		BIO_set_retry_read(bio);
	return 0;
}

static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
	struct channel *c = BIO_get_data(bio);

	(void)num;
	(void)ptr;
	switch (cmd) {
	case BIO_CTRL_FLUSH:
		return 1;
	case BIO_CTRL_EOF:
		return c->sock_eof;
	default:
		return 0;
	}
}

static const BIO_METHOD *bio_method(void)
{
	static BIO_METHOD *method; /* for good */

	if (method)
		return method;
	method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "channel");
	if (!method)
		return NULL;
	BIO_meth_set_write_ex(method, bio_write);
	BIO_meth_set_read_ex(method, bio_read);
	BIO_meth_set_ctrl(method, bio_ctrl);
	return method;
}

/* Called at each step of a handshake. */
static void on_step(const SSL *ssl, int where, int ret)
{
	struct channel *c = BIO_get_data(SSL_get_rbio(ssl));

	(void)ret;
	if ((where & SSL_CB_ACCEPT_LOOP) == SSL_CB_ACCEPT_LOOP && SSL_get_state(ssl) == TLS_ST_SW_CERT)
		c->showed = true;
}

int channel_tls(struct channel *c, SSL *ssl, const char *first, size_t len)
{
	const BIO_METHOD *method = bio_method();
	BIO *bio = NULL;
	int r = 0;

	if (c->error || c->ssl || c->finishing)
		r = c->error ? c->error : -EINVAL;
	else if (method)
		bio = BIO_new(method);
	if (r == 0 && !bio)
		r = -ENOMEM;
	if (r == 0)
		r = leftover_add(&c->first, first, len);
	if (r == 0 && !c->offering)
		r = leftover_add(&c->first, c->rest.data ? c->rest.data + c->rest.at : NULL, c->rest.len);
	if (r < 0) {
		BIO_free(bio);
		SSL_free(ssl);
		return r;
	}
	if (!c->offering)
		leftover_clear(&c->rest);
	BIO_set_data(bio, c);
	BIO_set_init(bio, 1);
	SSL_set_bio(ssl, bio, bio);
	SSL_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
	SSL_set_read_ahead(ssl, 1);
	SSL_set_default_read_buffer_len(ssl, READ_AHEAD);
	if (SSL_is_server(ssl))
		SSL_set_info_callback(ssl, on_step);
	c->ssl = ssl;
	c->paused = false;
	loop_later(c->loop, &c->task);
	return 0;
}

/* Why the last call did not do all it should: 0 when it only waits, or has come to a proper end. */
static int tls_error(struct channel *c, int ret)
{
	long verify = SSL_get_verify_result(c->ssl);
	unsigned long code;
	int kind = SSL_get_error(c->ssl, ret), r = -EPROTO;

	switch (kind) {
	case SSL_ERROR_WANT_READ:
		return 0;
	case SSL_ERROR_ZERO_RETURN:
		c->eof = true;
		return 0;
	default:
		break;
	}
	code = ERR_peek_error();
	if (!c->up && verify != X509_V_OK) {
		c->problem = X509_verify_cert_error_string(verify);
	} else if (c->sock_eof || c->sock_error) {
		c->problem = c->up ? "the connection ended without TLS saying so"
				   : "the connection ended during the TLS handshake";
		r = c->sock_error ? c->sock_error : c->up ? -ECONNABORTED : -ECONNRESET;
	} else if (kind == SSL_ERROR_SSL && ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE) {
		r = -ENOMEM;
	} else {
		if (ERR_GET_REASON(code) > SSL_AD_REASON_OFFSET)
			c->alert = ERR_GET_REASON(code) - SSL_AD_REASON_OFFSET;
		c->problem = ERR_reason_error_string(code);
		if (!c->problem)
			c->problem = "TLS failed";
	}
	ERR_clear_error();
	return r;
}

int tls_handshake(struct channel *c)
{
	int r;

	errors_clear();
	r = SSL_do_handshake(c->ssl);
	if (r == 1)
		return 1;
	r = tls_error(c, r);
	if (r == 0 && c->eof) {
		c->problem = "the peer closed during the TLS handshake";
		return -ECONNRESET;
	}
	return r;
}

/* As many records as there are: each SSL_read() gives one at most. */
ssize_t tls_read(struct channel *c, char *data, size_t len)
{
	size_t got = 0, n;

	if (c->read_error)
		return c->read_error;
	do {
		/* To find out that there is nothing OpenSSL takes a buffer and gives it back. */
		if (!c->readable && !c->first.len && !SSL_has_pending(c->ssl))
			break;
		errors_clear();
		if (!SSL_read_ex(c->ssl, data + got, len - got, &n)) {
			c->read_error = tls_error(c, 0);
			break;
		}
		got += n;
	} while (len - got >= QUEUE_CHUNK);
	/* A ticket or new keys from the peer leave a buffer to write in behind, 16 KiB for as long as nothing is written.
	 * Not with the header of a record read and nothing else of it: there OpenSSL had a bug (CVE-2024-4741). */
	if (SSL_rstate_string(c->ssl)[1] == 'H')
		SSL_free_buffers(c->ssl);
	return got > 0 ? (ssize_t)got : c->read_error;
}

int tls_write(struct channel *c, const void *data, size_t len)
{
	size_t written;
	int r;

	if (len == 0)
		return 0;
	errors_clear();
	/* The close_notify of a channel that ends goes along with its last record. */
	c->direct = len <= QUEUE_CHUNK && !c->finishing;
	r = SSL_write_ex(c->ssl, data, len, &written);
	c->direct = false;
	if (r)
		return 0;
	r = tls_error(c, 0);
	return r < 0 ? r : -EPROTO;
}

bool channel_is_distrusted(const struct channel *c)
{
	switch (c->alert) {
	case SSL_AD_BAD_CERTIFICATE:
	case SSL_AD_UNSUPPORTED_CERTIFICATE:
	case SSL_AD_CERTIFICATE_REVOKED:
	case SSL_AD_CERTIFICATE_EXPIRED:
	case SSL_AD_CERTIFICATE_UNKNOWN:
	case SSL_AD_UNKNOWN_CA:
		return !c->up;
	default:
		return c->showed && !c->up && (c->eof || c->sock_eof || c->sock_error);
	}
}

bool channel_speaks_h2(const struct channel *c)
{
	const unsigned char *alpn = NULL;
	unsigned len = 0;

	if (c->ssl)
		SSL_get0_alpn_selected(c->ssl, &alpn, &len);
	return len == 2 && memcmp(alpn, "h2", 2) == 0;
}

int tls_finish(struct channel *c)
{
	errors_clear();
	return SSL_shutdown(c->ssl) < 0 ? tls_error(c, -1) : 0;
}
