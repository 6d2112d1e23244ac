#include "core/wire/tls.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/wire/credential.h"

#define SEALED_SIZE (TLS_SLICE + 1024) /* a slice is one record */

struct tls {
    SSL *ssl;
    BIO *in, *out; /* the ssl's */
    bool has_certificate;
    size_t sealed_sent, sealed_len;
    char name[REDIS_NAME_SIZE];
    char server[256]; /* the name that the certificate must bear */
    bool announced;   /* Sentinels or nodes named it so */
    char sealed[SEALED_SIZE];
};

/* ---- OpenSSL */

#define FUNCTIONS(F)                                                                                         \
    F(OPENSSL_init_crypto)                                                                                   \
    F(TLS_client_method)                                                                                     \
    F(SSL_CTX_new)                                                                                           \
    F(SSL_CTX_free)                                                                                          \
    F(SSL_CTX_ctrl)                                                                                          \
    F(SSL_CTX_set_options)                                                                                   \
    F(SSL_CTX_set_verify)                                                                                    \
    F(SSL_CTX_set_default_verify_paths)                                                                      \
    F(SSL_CTX_load_verify_file)                                                                              \
    F(SSL_CTX_load_verify_dir)                                                                               \
    F(SSL_CTX_set_default_passwd_cb)                                                                         \
    F(SSL_CTX_set_default_passwd_cb_userdata)                                                                \
    F(SSL_CTX_use_certificate_chain_file)                                                                    \
    F(SSL_CTX_use_PrivateKey_file)                                                                           \
    F(SSL_new)                                                                                               \
    F(SSL_free)                                                                                              \
    F(SSL_ctrl)                                                                                              \
    F(SSL_set_bio)                                                                                           \
    F(SSL_set_connect_state)                                                                                 \
    F(SSL_get0_param)                                                                                        \
    F(SSL_do_handshake)                                                                                      \
    F(SSL_read)                                                                                              \
    F(SSL_write)                                                                                             \
    F(SSL_get_error)                                                                                         \
    F(SSL_get_verify_result)                                                                                 \
    F(BIO_new)                                                                                               \
    F(BIO_s_mem)                                                                                             \
    F(BIO_read)                                                                                              \
    F(BIO_write)                                                                                             \
    F(BIO_free)                                                                                              \
    F(ERR_peek_error)                                                                                        \
    F(ERR_clear_error)                                                                                       \
    F(ERR_reason_error_string)                                                                               \
    F(X509_VERIFY_PARAM_set1_host)                                                                           \
    F(X509_VERIFY_PARAM_set1_ip_asc)                                                                         \
    F(X509_verify_cert_error_string)                                                                         \
    F(EVP_sha256)                                                                                            \
    F(HMAC)

static struct {
#define FUNCTION(name) __typeof__(name) *name;
    FUNCTIONS(FUNCTION)
#undef FUNCTION
} ssl;

static char ssl_missing[256]; /* why it could not be loaded; "": it was */

/* Without its clean-up at exit(), which would end connections that the process still needs then. */
static void load_openssl(void)
{
    void *library = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);

#define FUNCTION(name) library = library && (*(void **)&ssl.name = dlsym(library, #name)) ? library : NULL;
    FUNCTIONS(FUNCTION)
#undef FUNCTION
    if (!library || !ssl.OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL))
        snprintf(ssl_missing, sizeof ssl_missing, "%s", library ? "it does not start" : dlerror());
}

static bool has_openssl(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load_openssl);
    return !ssl_missing[0];
}

/* ---- What went wrong */

static const char *reason(unsigned long code)
{
    const char *text = code ? ssl.ERR_reason_error_string(code) : NULL;

    return text ? text : "no reason given";
}

#define RENEW "renew it on the server, or see whether this machine's clock is right"
#define UNKNOWN_ISSUER                                                                                       \
    "its certificate is of an issuer that is not known here; name the issuer's by --tls-cacert"

/* A server's certificate may have one of these faults; %s is the name that it must bear. */
static const struct {
    long verdict;
    const char *line;
} verdicts[] = {
    {X509_V_ERR_CERT_HAS_EXPIRED, "its certificate has expired; " RENEW},
    {X509_V_ERR_CERT_NOT_YET_VALID, "its certificate is not yet valid; " RENEW},
    {X509_V_ERR_HOSTNAME_MISMATCH, "its certificate is not for the name %s; write the host as the "
                                   "certificate has it, or that name as --tls-sni"},
    {X509_V_ERR_IP_ADDRESS_MISMATCH,
     "its certificate is not for the address %s; write a host that it has, or its name as --tls-sni"},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, UNKNOWN_ISSUER},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, UNKNOWN_ISSUER},
    {X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, UNKNOWN_ISSUER},
    {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, UNKNOWN_ISSUER},
    {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, UNKNOWN_ISSUER},
};

static int refuse_certificate(const struct tls *t, long verdict, struct error *e)
{
    char line[256];

    if (t->announced &&
        (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH))
        return error_set(
            e, WEIR_EUNREACHABLE,
            "redis %s: TLS: %s is named so by the Sentinels or nodes, and its certificate is not for "
            "that name; have them announce the certificate's name, or write that as --tls-sni",
            t->name, t->server);
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++) {
        if (verdicts[i].verdict != verdict)
            continue;
        snprintf(line, sizeof line, verdicts[i].line, t->server);
        return error_set(e, WEIR_EUNREACHABLE, "redis %s: TLS: %s", t->name, line);
    }
    return error_set(e, WEIR_EUNREACHABLE,
                     "redis %s: TLS: its certificate is refused: %s; replace it on the server", t->name,
                     ssl.X509_verify_cert_error_string(verdict));
}

#define PLAIN_PORT "it speaks no TLS on this port; name its TLS port, or write redis:// to do without TLS"
#define OLD_TLS "it speaks no TLS of version 1.2 or newer; raise its tls-protocols"
#define OTHER_CERTIFICATE "refuses our certificate: %s; name another one by --tls-cert and --tls-key"

/* Of the handshake, and of what the server says later; %s is OpenSSL's own text. */
static const struct {
    int reason;
    const char *line;
} faults[] = {
    {SSL_R_WRONG_VERSION_NUMBER, PLAIN_PORT},
    {SSL_R_HTTP_REQUEST, PLAIN_PORT},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, OLD_TLS},
    {SSL_R_UNSUPPORTED_PROTOCOL, OLD_TLS},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED,
     "it wants a certificate of ours; name one by --tls-cert and --tls-key"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, "it refuses the handshake; see whether it wants a certificate of "
                                          "ours (--tls-cert, --tls-key), and its ciphers"},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA, OTHER_CERTIFICATE},
    {SSL_R_TLSV1_ALERT_ACCESS_DENIED, OTHER_CERTIFICATE},
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, OTHER_CERTIFICATE},
    {SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, OTHER_CERTIFICATE},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, OTHER_CERTIFICATE},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, OTHER_CERTIFICATE},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, OTHER_CERTIFICATE},
};

static int explain(const struct tls *t, unsigned long code, struct error *e)
{
    char line[256];

    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        if (ERR_GET_LIB(code) != ERR_LIB_SSL || faults[i].reason != ERR_GET_REASON(code))
            continue;
        snprintf(line, sizeof line, faults[i].line, reason(code));
        return error_set(e, WEIR_EUNREACHABLE, "redis %s: TLS: %s", t->name, line);
    }
    return error_set(e, WEIR_EUNREACHABLE, "redis %s: TLS: %s; see the log of the server", t->name,
                     reason(code));
}

/* Judges a call that returned n: 0 when it wants bytes of the peer, else its error. */
static int judge(struct tls *t, int n, struct error *e)
{
    int kind = ssl.SSL_get_error(t->ssl, n);
    unsigned long code = ssl.ERR_peek_error();

    if (kind == SSL_ERROR_WANT_READ)
        return 0;
    if (kind == SSL_ERROR_ZERO_RETURN)
        return error_set(e, WEIR_EUNREACHABLE, "redis %s: connection lost: closed by the other side; %s",
                         t->name, "see whether it was restarted");
    if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED)
        return refuse_certificate(t, ssl.SSL_get_verify_result(t->ssl), e);
    return explain(t, code, e);
}

/* ---- Made and freed */

/* Finds the file that a flag names, and checks that it can be read. */
static int find_file(const struct tls *t, const char *flag, const char *name, char path[PATH_MAX],
                     struct error *e)
{
    credential_path(name, path);
    if (access(path, R_OK) == 0)
        return 0;
    return error_set(
        e, WEIR_ECONFIG,
        "redis %s: --tls-%s %.150s: cannot be read: %s; name a file of PEM that this user may read", t->name,
        flag, path, strerror(errno));
}

static int unusable(const struct tls *t, const char *flag, const char *path, const char *why, struct error *e)
{
    return error_set(e, WEIR_ECONFIG, "redis %s: --tls-%s %.150s: %s", t->name, flag, path, why);
}

static int load_issuers(const struct tls *t, const struct redis_address *a, SSL_CTX *ctx, struct error *e)
{
    char path[PATH_MAX];

    if (!a->cacert[0] && !a->cacertdir[0])
        ssl.SSL_CTX_set_default_verify_paths(ctx);
    if (a->cacert[0]) {
        if (find_file(t, "cacert", a->cacert, path, e) < 0)
            return e->status;
        if (ssl.SSL_CTX_load_verify_file(ctx, path) != 1)
            return unusable(t, "cacert", path, "holds no certificate; name a file of PEM certificates", e);
    }
    if (a->cacertdir[0]) {
        if (find_file(t, "cacertdir", a->cacertdir, path, e) < 0)
            return e->status;
        if (ssl.SSL_CTX_load_verify_dir(ctx, path) != 1)
            return unusable(t, "cacertdir", path,
                            "cannot be used; name a folder that openssl rehash has prepared", e);
    }
    return 0;
}

/* OpenSSL would ask on the terminal. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the type is OpenSSL's */
static int on_encrypted_key(char *out, int size, int writes, void *arg)
{
    (void)out;
    (void)size;
    (void)writes;
    *(bool *)arg = true;
    return 0;
}

static int load_key(const struct tls *t, const char *path, SSL_CTX *ctx, struct error *e)
{
    bool encrypted = false;
    unsigned long code;

    ssl.SSL_CTX_set_default_passwd_cb(ctx, on_encrypted_key);
    ssl.SSL_CTX_set_default_passwd_cb_userdata(ctx, &encrypted);
    if (ssl.SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM) == 1)
        return 0;
    code = ssl.ERR_peek_error();
    if (encrypted)
        return unusable(t, "key", path,
                        "is encrypted; name one that is not: openssl pkey -in FILE -out PLAIN", e);
    if (ERR_GET_LIB(code) == ERR_LIB_X509)
        return unusable(t, "key", path, "is not the key of the certificate (--tls-cert); name that", e);
    return unusable(t, "key", path, "holds no private key; name a file of PEM that does", e);
}

/* Ours; without --tls-key, the key stands in the file of the certificate. */
static int load_certificate(struct tls *t, const struct redis_address *a, SSL_CTX *ctx, struct error *e)
{
    char path[PATH_MAX];

    if (!a->cert[0])
        return 0;
    if (find_file(t, "cert", a->cert, path, e) < 0)
        return e->status;
    if (ssl.SSL_CTX_use_certificate_chain_file(ctx, path) != 1)
        return unusable(t, "cert", path, "holds no certificate; name a file of PEM certificates", e);
    if (a->key[0] && find_file(t, "key", a->key, path, e) < 0)
        return e->status;
    t->has_certificate = true;
    return load_key(t, path, ctx, e);
}

static int no_memory(const struct tls *t, struct error *e)
{
    return error_set(e, WEIR_EINTERNAL, "redis %s: out of memory for TLS; free some and try again", t->name);
}

static int make_ssl(struct tls *t, SSL_CTX *ctx, struct error *e)
{
    t->in = ssl.BIO_new(ssl.BIO_s_mem());
    t->out = ssl.BIO_new(ssl.BIO_s_mem());
    if (t->in && t->out)
        t->ssl = ssl.SSL_new(ctx);
    if (t->ssl) {
        ssl.SSL_set_bio(t->ssl, t->in, t->out);
        ssl.SSL_set_connect_state(t->ssl);
        return 0;
    }
    ssl.BIO_free(t->in);
    ssl.BIO_free(t->out);
    return no_memory(t, e);
}

/* Whom the certificate must be for; a server that has several is told by name which one. */
static int demand_name(struct tls *t, struct error *e)
{
    X509_VERIFY_PARAM *demand = ssl.SSL_get0_param(t->ssl);
    unsigned char binary[16];
    bool numbers = inet_pton(AF_INET, t->server, binary) == 1 || inet_pton(AF_INET6, t->server, binary) == 1;
    bool done = numbers ? ssl.X509_VERIFY_PARAM_set1_ip_asc(demand, t->server) == 1
                        : ssl.X509_VERIFY_PARAM_set1_host(demand, t->server, 0) == 1 &&
                              ssl.SSL_ctrl(t->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                                           t->server) == 1;

    return done ? 0 : no_memory(t, e);
}

static int prepare(struct tls *t, const struct redis_address *a, SSL_CTX *ctx, struct error *e)
{
    ssl.SSL_CTX_ctrl(ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
    ssl.SSL_CTX_ctrl(ctx, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, NULL);
    ssl.SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    ssl.SSL_CTX_set_verify(ctx, a->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    if (load_issuers(t, a, ctx, e) < 0 || load_certificate(t, a, ctx, e) < 0 || make_ssl(t, ctx, e) < 0 ||
        demand_name(t, e) < 0)
        return e->status;
    return 0;
}

int tls_new(const struct redis_address *address, struct tls **t, struct error *e)
{
    struct tls *new = calloc(1, sizeof *new);
    SSL_CTX *ctx = NULL;
    int status;

    *t = NULL;
    if (!new)
        return error_set(e, WEIR_EINTERNAL, "Redis: out of memory for TLS; free some and try again");
    redis_address_format(address, new->name, sizeof new->name);
    snprintf(new->server, sizeof new->server, "%s", address->sni[0] ? address->sni : address->host);
    new->announced = address->finder != REDIS_NAMED && !address->sni[0];
    if (!has_openssl()) {
        status = error_set(e, WEIR_ECONFIG, "redis %s: TLS needs OpenSSL 3: %s; install libssl3", new->name,
                           ssl_missing);
    } else {
        ssl.ERR_clear_error();
        ctx = ssl.SSL_CTX_new(ssl.TLS_client_method());
        status = ctx ? prepare(new, address, ctx, e) : no_memory(new, e);
        ssl.SSL_CTX_free(ctx); /* the ssl holds it */
    }
    if (status)
        tls_free(new);
    else
        *t = new;
    return status;
}

void tls_free(struct tls *t)
{
    if (t && t->ssl)
        ssl.SSL_free(t->ssl);
    free(t);
}

/* ---- Bytes */

int tls_shake(struct tls *t, struct error *e)
{
    int n;

    ssl.ERR_clear_error();
    n = ssl.SSL_do_handshake(t->ssl);
    return n == 1 ? 1 : judge(t, n, e);
}

int tls_take(struct tls *t, const char *bytes, size_t len, struct error *e)
{
    return len == 0 || ssl.BIO_write(t->in, bytes, (int)len) == (int)len ? 0 : no_memory(t, e);
}

int tls_decrypt(struct tls *t, char *out, int size, struct error *e)
{
    int n;

    ssl.ERR_clear_error();
    n = ssl.SSL_read(t->ssl, out, size);
    return n > 0 ? n : judge(t, n, e);
}

int tls_encrypt(struct tls *t, const char *bytes, size_t len, struct error *e)
{
    int n;

    ssl.ERR_clear_error();
    n = ssl.SSL_write(t->ssl, bytes, (int)(len < TLS_SLICE ? len : TLS_SLICE));
    if (n > 0)
        return n;
    n = judge(t, n, e);
    return n < 0 ? n : no_memory(t, e);
}

size_t tls_waiting(struct tls *t, const char **bytes)
{
    if (t->sealed_sent == t->sealed_len) {
        int n = ssl.BIO_read(t->out, t->sealed, sizeof t->sealed);

        t->sealed_sent = 0;
        t->sealed_len = n > 0 ? (size_t)n : 0;
    }
    *bytes = t->sealed + t->sealed_sent;
    return t->sealed_len - t->sealed_sent;
}

void tls_sent(struct tls *t, size_t n)
{
    t->sealed_sent += n;
}

const char *tls_advice(const struct tls *t)
{
    return t->has_certificate
               ? "see whether it takes the certificate of --tls-cert, or was restarted"
               : "see whether it wants a certificate of ours (--tls-cert, --tls-key), or was restarted";
}

int tls_hmac(const char *secret, const char *text, size_t len, unsigned char mac[TLS_MAC_SIZE],
             struct error *e)
{
    if (has_openssl() &&
        ssl.HMAC(ssl.EVP_sha256(), secret, (int)strlen(secret), (const unsigned char *)text, len, mac, NULL))
        return 0;
    return error_set(e, WEIR_ECONFIG, "HMAC: no OpenSSL: %s; install libssl3",
                     ssl_missing[0] ? ssl_missing : "it makes none");
}
