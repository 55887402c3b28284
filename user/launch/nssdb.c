/* SPDX-License-Identifier: MIT */
#include "launch/nssdb.h"

#include <endian.h>
#include <errno.h>
#include <nettle/hmac.h>
#include <nettle/md5.h>
#include <nettle/pbkdf2.h>
#include <nettle/sha1.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "launch/sqlite_file.h"

/* -- NSS' objects ----------------------------------------------------------------------------- */

/* Attributes of PKCS #11 and of NSS, in hexadecimal: the columns of its tables. */
#define COLUMNS                                                                                                      \
	"a0,a1,a2,a3,a10,a11,a12,a80,a81,a82,a83,a84,a85,a86,a87,a88,a89,a8a,a8b,a90,a100,a101,a102,a103,a104,a105," \
	"a106,a107,a108,a109,a10a,a10b,a10c,a110,a111,a120,a121,a122,a123,a124,a125,a126,a127,a128,a129,a130,a131,"  \
	"a132,a133,a134,a160,a161,a162,a163,a164,a165,a166,a170,a180,a181,a200,a201,a202,a210,a300,a301,a302,a400,"  \
	"a401,a402,a403,a404,a405,a406,a480,a481,a482,a500,a501,a502,a503,a40000211,a40000212,a80000001,ace534351,"  \
	"ace534352,ace534353,ace534354,ace534355,ace534356,ace534357,ace534358,ace534364,ace534365,ace534366,"       \
	"ace534367,ace534368,ace534369,ace534373,ace534374,ace536351,ace536352,ace536353,ace536354,ace536355,"       \
	"ace536356,ace536357,ace536358,ace536359,ace53635a,ace53635b,ace53635c,ace53635d,ace53635e,ace53635f,"       \
	"ace536360,ace5363b4,ace5363b5,ad5a0db00"
#define OBJECTS(name) "CREATE TABLE " name " (id PRIMARY KEY UNIQUE ON CONFLICT ABORT," COLUMNS ")"
#define N_COLUMNS     120 /* with the id */

enum {
	CERTIFICATE = 1, /* ids of the two objects */
	TRUST = 2,

	CLASS = 0x0,
	TOKEN = 0x1,
	PRIVATE = 0x2,
	LABEL = 0x3,
	VALUE = 0x11,
	TYPE = 0x80,
	ISSUER = 0x81,
	SERIAL = 0x82,
	SUBJECT = 0x101,
	ID = 0x102,
	MODIFIABLE = 0x170,
};
/* Of a trust. The first two may not pass for an enum's value. */
#define TRUST_SERVER	0xce536358u
#define TRUST_CLIENT	0xce536359u
#define TRUST_CODE	0xce53635au
#define TRUST_EMAIL	0xce53635bu
#define TRUST_STEP_UP	0xce536360u
#define TRUST_SHA1	0xce5363b4u
#define TRUST_MD5	0xce5363b5u
#define CLASS_TRUST	"\xce\x53\x43\x53"
#define TRUSTED_ISSUER	"\xce\x53\x43\x52"
#define MUST_BE_CHECKED "\xce\x53\x43\x53" /* by its own issuer: no trust, and no distrust */

struct attribute {
	uint32_t type;
	struct sqlite_value value;
};

static size_t column_of(uint32_t type)
{
	char name[16];
	size_t column = 1, len;

	snprintf(name, sizeof(name), "a%x", type);
	len = strlen(name);
	for (const char *at = COLUMNS; *at; at += strcspn(at, ","), at += *at == ',', column++)
		if (!strncmp(at, name, len) && (at[len] == ',' || !at[len]))
			return column;
	return 0; /* never */
}

static void object_put(struct sqlite_file *file, unsigned table, uint32_t id, const struct attribute *attributes,
		       size_t n)
{
	struct sqlite_value values[N_COLUMNS] = { { .kind = NONE } };

	values[0] = value_number(id);
	for (size_t i = 0; i < n; i++)
		values[column_of(attributes[i].type)] = attributes[i].value;
	sqlite_table_put(file, table, values, ARRAY_SIZE(values));
}

/* -- the password ------------------------------------------------------------------------------
 *
 * There is none, and so nothing of this is a secret; but NSS believes only what the password vouches for. Its check is an
 * encrypted word, made once by NSS from these salts.
 */

static const uint8_t password_salt[20] = { 0x7d, 0x93, 0x69, 0x6a, 0x83, 0xa5, 0xe9, 0xa3, 0xe7, 0xfb,
					   0x6a, 0x31, 0xe8, 0xf8, 0xb6, 0xa2, 0xd0, 0xb4, 0x80, 0x98 };
static const char password_check[] = "\x30\x81\x81\x30\x6d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0d\x30\x60\x30\x41"
				     "\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0c\x30\x34\x04\x20\x1e\x9e\xbe\xf2\xec"
				     "\x59\x40\x6c\x4f\x5d\x86\xfe\x8d\xb3\xc3\xbd\xb4\x98\x3b\xd6\x84\xee\xbc\xad\x59"
				     "\xb6\xbf\xfb\x35\x47\xc4\x46\x02\x01\x01\x02\x01\x20\x30\x0a\x06\x08\x2a\x86\x48"
				     "\x86\xf7\x0d\x02\x09\x30\x1b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x01\x2a\x04\x0e"
				     "\xdd\x98\xf7\xc9\xe7\x5d\xf1\x78\x7f\xdf\x9b\x2f\x3c\xc3\x04\x10\x30\x5c\x2c\x09"
				     "\xad\x0f\x3b\x7b\x80\x20\xf6\xa3\xca\xc0\x52\x92";
/* PBMAC1 with PBKDF2, one round, HMAC-SHA-256 twice; the salt of 32 bytes, and the MAC as long, come in between and after. */
static const char mac_head[] =
	"\x30\x81\x80\x30\x5c\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0e\x30\x4f\x30\x41\x06\x09"
	"\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0c\x30\x34\x04\x20";
static const char mac_middle[] = "\x02\x01\x01\x02\x01\x20\x30\x0a\x06\x08\x2a\x86\x48\x86\xf7\x0d\x02\x09\x30\x0a\x06"
				 "\x08\x2a\x86\x48\x86\xf7\x0d\x02\x09\x04\x20";

#define MAC_SIZE (sizeof(mac_head) - 1 + 32 + sizeof(mac_middle) - 1 + 32)

/* Of one attribute: over the object's id, its type and its value. */
static void mac_make(const struct attribute *attribute, uint8_t out[static MAC_SIZE])
{
	static const uint8_t salt[32];
	const uint32_t words[] = { htobe32(TRUST), htobe32(attribute->type) };
	uint8_t password[SHA1_DIGEST_SIZE], key[32];
	struct hmac_sha256_ctx mac;
	struct sha1_ctx sha;

	sha1_init(&sha);
	sha1_update(&sha, sizeof(password_salt), password_salt);
	sha1_digest(&sha, sizeof(password), password);
	pbkdf2_hmac_sha256(sizeof(password), password, 1, sizeof(salt), salt, sizeof(key), key);
	hmac_sha256_set_key(&mac, sizeof(key), key);
	hmac_sha256_update(&mac, sizeof(words), (const uint8_t *)words);
	hmac_sha256_update(&mac, attribute->value.len, attribute->value.data);
	memcpy(out, mac_head, sizeof(mac_head) - 1);
	out += sizeof(mac_head) - 1;
	memcpy(out, salt, sizeof(salt));
	out += sizeof(salt);
	memcpy(out, mac_middle, sizeof(mac_middle) - 1);
	hmac_sha256_digest(&mac, 32, out + sizeof(mac_middle) - 1);
}

/* vouched: by their types, upwards, for that is the order of the names below, too. */
static int keys_make(const struct attribute *vouched, size_t n, struct buf *out)
{
	struct sqlite_file file = { 0 };
	unsigned meta;

	sqlite_table_add(&file, "nssPrivate", OBJECTS("nssPrivate"));
	meta = sqlite_table_add(&file, "metaData",
				"CREATE TABLE metaData (id PRIMARY KEY UNIQUE ON CONFLICT REPLACE, item1, item2)");
	sqlite_table_put(&file, meta,
			 (struct sqlite_value[]){ value_text("password"),
						  value_bytes(password_salt, sizeof(password_salt)),
						  value_bytes(password_check, sizeof(password_check) - 1) },
			 3);
	for (size_t i = 0; i < n; i++) {
		uint8_t mac[MAC_SIZE];
		char name[32];

		mac_make(&vouched[i], mac);
		snprintf(name, sizeof(name), "sig_cert_%08x_%08x", (unsigned)TRUST, vouched[i].type);
		sqlite_table_put(
			&file, meta,
			(struct sqlite_value[]){ value_text(name), value_bytes(mac, sizeof(mac)), { .kind = NONE } },
			3);
	}
	return sqlite_file_finish(&file, out);
}

/* -- the certificate ---------------------------------------------------------------------------- */

struct der {
	const uint8_t *at;
	size_t len;
};

/* The next element, with its head in ret_whole, without in ret_inner. */
static bool der_take(struct der *from, struct der *ret_whole, struct der *ret_inner)
{
	size_t head = 2, len;

	if (from->len < 2)
		return false;
	len = from->at[1];
	if (len & 0x80) {
		size_t more = len & 0x7f;

		if (more < 1 || more > 2 || from->len < 2 + more)
			return false;
		len = more == 1 ? from->at[2] : (size_t)(from->at[2] << 8 | from->at[3]);
		head += more;
	}
	if (len > from->len - head)
		return false;
	*ret_whole = (struct der){ from->at, head + len };
	*ret_inner = (struct der){ from->at + head, len };
	from->at += head + len;
	from->len -= head + len;
	return true;
}

struct names {
	struct der serial, issuer, subject;
};

/* Certificate, in it the part that is signed, in it: version, serial, algorithm, issuer, validity, subject. */
static bool certificate_read(const uint8_t *der, size_t len, struct names *ret)
{
	struct der file = { der, len }, outer, in, whole, skipped;

	if (!der_take(&file, &whole, &outer) || !der_take(&outer, &whole, &in))
		return false;
	if (in.len && in.at[0] == 0xa0 && !der_take(&in, &whole, &skipped))
		return false;
	return der_take(&in, &ret->serial, &skipped) && ret->serial.at[0] == 0x02 && der_take(&in, &whole, &skipped) &&
	       der_take(&in, &ret->issuer, &skipped) && der_take(&in, &whole, &skipped) &&
	       der_take(&in, &ret->subject, &skipped) && ret->issuer.at[0] == 0x30 && ret->subject.at[0] == 0x30;
}

int nssdb_make(const uint8_t *der, size_t len, struct buf *certificates, struct buf *keys)
{
	static const char label[] = "netpawl", yes[] = { 1 }, no[] = { 0 }, nothing[] = "\xa5\0\x5a";
	uint8_t sha1[SHA1_DIGEST_SIZE], md5[MD5_DIGEST_SIZE];
	struct sqlite_file file = { 0 };
	struct sha1_ctx s;
	struct md5_ctx m;
	struct names names;
	unsigned table;
	int r;

	if (!certificate_read(der, len, &names))
		return -EINVAL;
	sha1_init(&s);
	sha1_update(&s, len, der);
	sha1_digest(&s, sizeof(sha1), sha1);
	md5_init(&m);
	md5_update(&m, len, der);
	md5_digest(&m, sizeof(md5), md5);

	const struct sqlite_value issuer = value_bytes(names.issuer.at, names.issuer.len),
				  serial = value_bytes(names.serial.at, names.serial.len);
	const struct attribute certificate[] = {
		{ CLASS, value_bytes("\0\0\0\1", 4) },
		{ TOKEN, value_bytes(yes, 1) },
		{ PRIVATE, value_bytes(no, 1) },
		{ LABEL, value_bytes(label, strlen(label)) },
		{ VALUE, value_bytes(der, len) },
		{ TYPE, value_bytes("\0\0\0", 4) },
		{ ISSUER, issuer },
		{ SERIAL, serial },
		{ SUBJECT, value_bytes(names.subject.at, names.subject.len) },
		{ ID, value_bytes(sha1, sizeof(sha1)) },
		{ MODIFIABLE, value_bytes(yes, 1) },
	};
	const struct attribute trust[] = {
		{ CLASS, value_bytes(CLASS_TRUST, 4) },
		{ TOKEN, value_bytes(yes, 1) },
		{ PRIVATE, value_bytes(no, 1) },
		{ LABEL, value_bytes(nothing, 3) },
		{ ISSUER, issuer },
		{ SERIAL, serial },
		{ MODIFIABLE, value_bytes(yes, 1) },
		{ TRUST_SERVER, value_bytes(TRUSTED_ISSUER, 4) },
		{ TRUST_CLIENT, value_bytes(MUST_BE_CHECKED, 4) },
		{ TRUST_CODE, value_bytes(MUST_BE_CHECKED, 4) },
		{ TRUST_EMAIL, value_bytes(MUST_BE_CHECKED, 4) },
		{ TRUST_STEP_UP, value_bytes(no, 1) },
		{ TRUST_SHA1, value_bytes(sha1, sizeof(sha1)) },
		{ TRUST_MD5, value_bytes(md5, sizeof(md5)) },
	};

	table = sqlite_table_add(&file, "nssPublic", OBJECTS("nssPublic"));
	object_put(&file, table, CERTIFICATE, certificate, ARRAY_SIZE(certificate));
	object_put(&file, table, TRUST, trust, ARRAY_SIZE(trust));
	r = sqlite_file_finish(&file, certificates);
	return r ? r : keys_make(trust + 7, ARRAY_SIZE(trust) - 7, keys);
}
