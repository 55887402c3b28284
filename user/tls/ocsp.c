/* SPDX-License-Identifier: MIT */
#include "tls/ocsp.h"

#include <openssl/ocsp.h>
#include <openssl/x509v3.h>

#define STATUS_REQUEST 5   /* its number among the TLS extensions */
#define CLOCK_SKEW_S   300 /* between the responder and us */

bool staple_is_required(const X509 *cert)
{
	TLS_FEATURE *features = X509_get_ext_d2i(cert, NID_tlsfeature, NULL, NULL);
	bool found = false;

	for (int i = 0; i < sk_ASN1_INTEGER_num(features); i++)
		found |= ASN1_INTEGER_get(sk_ASN1_INTEGER_value(features, i)) == STATUS_REQUEST;
	sk_ASN1_INTEGER_pop_free(features, ASN1_INTEGER_free);
	return found;
}

/* Responders choose the hash that names the certificate. */
static bool is_about(const OCSP_SINGLERESP *single, const X509 *cert, const X509 *issuer)
{
	const OCSP_CERTID *id = OCSP_SINGLERESP_get0_id(single);
	ASN1_OBJECT *hash;
	OCSP_CERTID *wanted;
	const EVP_MD *md;
	bool same;

	if (!OCSP_id_get0_info(NULL, &hash, NULL, NULL, (OCSP_CERTID *)id))
		return false;
	md = EVP_get_digestbyobj(hash);
	wanted = md ? OCSP_cert_to_id(md, cert, issuer) : NULL;
	same = wanted && OCSP_id_cmp(id, wanted) == 0;
	OCSP_CERTID_free(wanted);
	return same;
}

static enum staple_verdict read_singles(OCSP_BASICRESP *basic, const X509 *cert, const X509 *issuer)
{
	enum staple_verdict verdict = STAPLE_NONE;

	for (int i = 0; i < OCSP_resp_count(basic); i++) {
		OCSP_SINGLERESP *single = OCSP_resp_get0(basic, i);
		ASN1_GENERALIZEDTIME *from, *to;
		int status;

		if (!is_about(single, cert, issuer))
			continue;
		status = OCSP_single_get0_status(single, NULL, NULL, &from, &to);
		if (status == V_OCSP_CERTSTATUS_REVOKED)
			return STAPLE_REVOKED; /* however old: it does not become good again */
		/* Without an end it would be good for ever. */
		if (status == V_OCSP_CERTSTATUS_GOOD && to && OCSP_check_validity(from, to, CLOCK_SKEW_S, -1))
			verdict = STAPLE_GOOD;
		else if (verdict != STAPLE_GOOD)
			verdict = STAPLE_BAD;
	}
	return verdict;
}

enum staple_verdict staple_check(const unsigned char *der, long len, STACK_OF(X509) * chain, X509_STORE *roots)
{
	enum staple_verdict verdict = STAPLE_BAD;
	OCSP_RESPONSE *response;
	OCSP_BASICRESP *basic = NULL;
	int n = sk_X509_num(chain);

	if (!der || len <= 0 || n < 1)
		return STAPLE_NONE;
	response = d2i_OCSP_RESPONSE(NULL, &der, len);
	if (response && OCSP_response_status(response) == OCSP_RESPONSE_STATUS_SUCCESSFUL)
		basic = OCSP_response_get1_basic(response);
	/* The signer is the issuer, or one whom the issuer has made a responder: OCSP_basic_verify() sees to it. */
	if (basic && OCSP_basic_verify(basic, chain, roots, 0) == 1)
		verdict = read_singles(basic, sk_X509_value(chain, 0), sk_X509_value(chain, n > 1 ? 1 : 0));
	OCSP_BASICRESP_free(basic);
	OCSP_RESPONSE_free(response);
	return verdict;
}
