#include "shim/refuse.h"

#include "shim/iterate.h"
#include "shim/reside.h"
#include "shim/say.h"
#include "shim/stats.h"

#include "shim/inside.h"

static bool has_said; /* the first refusal is the one that matters */

static const char *operation_name(const struct operation *operation)
{
    static const char *const directions[] = {"a copy to the device", "a copy to the host", "a copy on the device"};
    if (operation->kind == OPERATION_LAUNCH) {
        return operation->facts->name;
    }
    if (operation->kind == OPERATION_SET) {
        return "a memset";
    }
    return directions[((const struct copy_arguments *)(const void *)operation->arguments)->direction];
}

void refuse_memory(const char *what, uint64_t needed, uint64_t elsewhere)
{
    struct frames_counts frames = frames_count();
    uint64_t charged = (uint64_t)frames.charged_frames * frames.frame_bytes;
    uint64_t smallest = needed + elsewhere + charged + frames.frame_bytes - 1;
    smallest -= smallest % frames.frame_bytes;
    if (iterate_floor_bytes() > smallest) {
        smallest = iterate_floor_bytes();
    }
    stats_out_of_memory();
    if (!has_said) {
        say(SAY_ERROR,
            "out of memory: %s needs %llu bytes beside %llu that must stay, under a cap of %llu; the "
            "smallest cap that would do for it is %llu bytes",
            what, (unsigned long long)needed, (unsigned long long)(elsewhere + charged),
            (unsigned long long)(frames.cap_frames * frames.frame_bytes), (unsigned long long)smallest);
        has_said = true;
    }
}

CUresult refuse_operation(const struct operation *operation, const struct touches *touches)
{
    uint64_t needed = 0, frame = frames_count().frame_bytes, locked = reside_unmovable_bytes();
    for (uint32_t i = 0; i < touches->count; i++) {
        const struct allocation *allocation = space_get(touches->items[i].allocation);
        const struct place *home = space_place(allocation->home);
        uint64_t bytes = (uint64_t)home->page_count * frame;
        needed += bytes;
        locked -= home->is_resident && bytes <= locked ? bytes : 0;
    }
    refuse_memory(operation_name(operation), needed, locked);
    return CUDA_ERROR_OUT_OF_MEMORY;
}
