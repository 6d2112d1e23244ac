#include "tests/secure.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/clock_shift.h"
#include "tests/program.h"
#include "tests/server.h"
#include "tests/test.h"

#define OPENSSL "/usr/bin/env", "openssl"
#define NEW_KEY "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"

static void run_openssl(const char *folder, const char *const *words)
{
    static struct outcome o;

    program_run(&o, folder, words);
    if (o.code != 0)
        fail_msg("openssl %s: %s", words[2], o.err);
}

/* "NAME.crt"; eight at a time. */
static const char *file(const char *name, const char *ending)
{
    static char files[8][128];
    static unsigned next;
    char *made = files[next++ % 8];

    snprintf(made, sizeof files[0], "%s.%s", name, ending);
    return made;
}

void issuer_make(const char *folder, const char *name)
{
    char subject[128];

    snprintf(subject, sizeof subject, "/CN=%s", name);
    run_openssl(folder,
                (const char *const[]){OPENSSL, "req", "-x509", NEW_KEY, "-days", "2", "-subj", subject,
                                      "-keyout", file(name, "key"), "-out", file(name, "crt"), NULL});
}

void certificate_make(const char *folder, const char *name, const char *issuer, const char *names,
                      int64_t shift_us)
{
    char extension[256], clock[128];

    snprintf(extension, sizeof extension, "subjectAltName=%s\n", names);
    snprintf(clock, sizeof clock, "%s/%s.clock", folder, name);
    write_text(folder, file(name, "ext"), extension);
    run_openssl(folder, (const char *const[]){OPENSSL, "req", NEW_KEY, "-subj", "/CN=weir-test", "-keyout",
                                              file(name, "key"), "-out", file(name, "csr"), NULL});
    clock_shift_set(clock, shift_us);
    clock_shift_enter(clock);
    run_openssl(folder,
                (const char *const[]){OPENSSL, "x509", "-req", "-days", "1", "-in", file(name, "csr"), "-CA",
                                      file(issuer, "crt"), "-CAkey", file(issuer, "key"), "-extfile",
                                      file(name, "ext"), "-out", file(name, "crt"), NULL});
    clock_shift_leave();
}

/* Another process may take the port first. */
int server_listen_tls(struct server *s, const char *name, const char *issuer)
{
    char *answer = NULL, port[24] = "";

    for (int i = 0; i < 10; i++) {
        free(answer);
        snprintf(port, sizeof port, "%d", server_free_port());
        answer = server_ask(s, "CONFIG", "SET", "bind", "127.0.0.1", "tls-auth-clients", "optional",
                            "tls-cert-file", file(name, "crt"), "tls-key-file", file(name, "key"),
                            "tls-ca-cert-file", file(issuer, "crt"), "tls-port", port, NULL);
        if (strcmp(answer, "OK") == 0)
            break;
    }
    assert_string_equal(answer, "OK");
    free(answer);
    server_do(s, "CONFIG", "REWRITE");
    return atoi(port);
}

void server_show(struct server *s, const char *name)
{
    char *answer = server_ask(s, "CONFIG", "SET", "tls-cert-file", file(name, "crt"), "tls-key-file",
                              file(name, "key"), NULL);

    assert_string_equal(answer, "OK");
    free(answer);
}
