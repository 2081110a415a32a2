#include "trace/verb.h"
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} verbs[] = {{"report", verb_report}, {"plan", verb_plan}, {"curve", verb_curve}};

int main(int argc, char **argv)
{
    if (argc < 2)
        return verb_refuse("usage: reprise report FILE | plan FILE --cap SIZE | curve FILE [--svg OUT]");
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(argv[1], verbs[i].name) == 0)
            return verbs[i].run(argc - 2, argv + 2);
    return verb_refuse("there is no verb %s; there are report, plan and curve", argv[1]);
}
