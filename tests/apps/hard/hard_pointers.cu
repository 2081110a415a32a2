/* Habits of pointers: how kernels come to know where their data is. See hard.cuh. */
#include "tests/apps/hard/hard.cuh"

constexpr int LAYERS = 40, ITERATIONS = 12;

static __global__ void store_pointer(float **table, int at, float *x)
{
    table[at] = x;
}

static __global__ void read_through(float *out, float **table, int at, size_t n)
{
    const float *x = table[at];
    float sum = 0.0f;
    for (size_t i = threadIdx.x; x && i < n; i += W)
        sum += x[i];
    out[threadIdx.x] = x ? sum : 0.0f;
}

static float through(float *out, float **table, int at, size_t n)
{
    float value[W];
    read_through<<<1, W>>>(out, table, at, n);
    CHECK(cudaMemcpy(value, out, sizeof value, cudaMemcpyDeviceToHost));
    float sum = 0.0f;
    for (float one : value)
        sum += one;
    return sum;
}

/* In a late iteration a kernel stores an activation's address, chosen by a flag in memory; backward follows it. */
static __global__ void choose_pointer(float **table, const int *flag, float *a, float *b, float *c)
{
    if (*flag == 1)
        *table = a;
    else if (*flag == 2)
        *table = b;
    else if (*flag == 3)
        *table = c;
}

static int chosen(int first)
{
    chain net = make_chain(LAYERS);
    float **table = make<float *>(8), *out = make<float>(W);
    int *flag = make<int>(1);
    CHECK(cudaMemset(table, 0, 8 * sizeof *table));
    for (int i = 0; i < ITERATIONS; i++) {
        int wish = i < first ? 0 : 1 + i % 3;
        CHECK(cudaMemcpy(flag, &wish, sizeof wish, cudaMemcpyHostToDevice));
        CHECK(cudaMemset(table, 0, 8 * sizeof *table));
        upload(net, i);
        run_forward(net);
        choose_pointer<<<1, 1>>>(table, flag, net.y[4], net.y[11], net.y[20]);
        float loss = read_loss(net), sum = through(out, table, 0, N);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a sum %a\n", i, static_cast<double>(loss), static_cast<double>(sum));
    }
    return finish(net);
}

static int chosen_early()
{
    return chosen(0);
}

static int chosen_late()
{
    return chosen(8);
}

/* The chosen one is set in the middle of backward, when a plan has dropped most of what it may name. */
static int followed_in_backward()
{
    chain net = make_chain(LAYERS);
    float **table = make<float *>(8), *out = make<float>(W);
    int *flag = make<int>(1);
    CHECK(cudaMemset(table, 0, 8 * sizeof *table));
    for (int i = 0; i < ITERATIONS; i++) {
        int wish = i < 7 ? 0 : 1 + i % 3;
        CHECK(cudaMemcpy(flag, &wish, sizeof wish, cudaMemcpyHostToDevice));
        CHECK(cudaMemset(table, 0, 8 * sizeof *table));
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            layer_forward(net, l);
            if (l == 12)
                choose_pointer<<<1, 1>>>(table, flag, net.y[4], net.y[7], net.y[12]);
        }
        float loss = read_loss(net), sum = 0.0f;
        run_backward(net, [&](int l) {
            if (l == 18)
                sum = through(out, table, 0, N);
        });
        run_step(net);
        printf("iter %d loss %a sum %a\n", i, static_cast<double>(loss), static_cast<double>(sum));
    }
    return finish(net);
}

/* Every iteration the device builds a table of more than 256 KiB, whose last entries are the ones that count. */
static int long_table()
{
    constexpr int ENTRIES = 50000;
    chain net = make_chain(LAYERS);
    float *out = make<float>(W);
    for (int i = 0; i < ITERATIONS; i++) {
        float **table = make<float *>(ENTRIES);
        CHECK(cudaMemset(table, 0, ENTRIES * sizeof *table));
        upload(net, i);
        run_forward(net);
        for (int l = 0; l < 8; l++)
            store_pointer<<<1, 1>>>(table, ENTRIES - 1 - l, net.y[l + 1]);
        float loss = read_loss(net), sum = 0.0f, *dy = start_backward(net);
        for (int l = LAYERS; l-- > 0;) {
            float *dx = make<float>(N);
            if (l == 30)
                sum = through(out, table, ENTRIES - 1 - 5, N);
            layer_backward(net, l, dx, dy);
            drop(dy);
            drop(net.y[l + 1]);
            dy = dx;
        }
        drop(dy);
        drop(net.y[0]);
        drop(table);
        run_step(net);
        printf("iter %d loss %a sum %a\n", i, static_cast<double>(loss), static_cast<double>(sum));
    }
    return finish(net);
}

/* A pointer is stored in one iteration and followed two iterations later. */
static int followed_later()
{
    chain net = make_chain(LAYERS);
    float **table = make<float *>(64), *out = make<float>(W), *kept[64] = {};
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        run_forward(net);
        kept[i] = make<float>(N);
        forward<<<blocks(N), 256>>>(kept[i], net.y[LAYERS], net.w, N);
        store_pointer<<<1, 1>>>(table, i, kept[i]);
        float loss = read_loss(net), sum = 0.0f;
        run_backward(net);
        if (i >= 2) {
            sum = through(out, table, i - 2, N);
            drop(kept[i - 2]);
        }
        run_step(net);
        printf("iter %d loss %a sum %a\n", i, static_cast<double>(loss), static_cast<double>(sum));
    }
    return finish(net);
}

struct node {
    node *next;
    float *data;
    float scale;
};

static __global__ void link_node(node *self, node *next, float *data, float scale)
{
    self->next = next;
    self->data = data;
    self->scale = scale;
}

static __global__ void walk(float *out, const node *head, size_t n)
{
    float sum = 0.0f;
    for (const node *at = head; at; at = at->next)
        for (size_t i = threadIdx.x; i < n; i += W)
            sum += at->scale * at->data[i];
    out[threadIdx.x] = sum;
}

static int linked_list()
{
    chain net = make_chain(LAYERS);
    float *out = make<float>(W);
    for (int i = 0; i < ITERATIONS; i++) {
        std::vector<node *> nodes;
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            layer_forward(net, l);
            if (l % 8 == 3) {
                node *fresh = make<node>(1);
                link_node<<<1, 1>>>(fresh, nodes.empty() ? nullptr : nodes.back(), net.y[l + 1], 0.25f);
                nodes.push_back(fresh);
            }
        }
        float loss = read_loss(net), value[W];
        walk<<<1, W>>>(out, nodes.back(), N);
        CHECK(cudaMemcpy(value, out, sizeof value, cudaMemcpyDeviceToHost));
        run_backward(net);
        for (node *&one : nodes)
            drop(one);
        run_step(net);
        printf("iter %d loss %a walk %a\n", i, static_cast<double>(loss), static_cast<double>(value[17]));
    }
    return finish(net);
}

struct layer_arguments {
    float *y;
    const float *x, *w;
    const float *residual; /* may be NULL */
    float *statistics;     /* may be NULL */
    size_t n;
};

static __global__ void forward_struct(layer_arguments a)
{
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i >= a.n)
        return;
    float value = soft(a.w[i % W] * a.x[i] * 2.0f + a.w[(i + 7) % W]);
    if (a.residual)
        value += 0.125f * a.residual[i];
    a.y[i] = value;
    if (a.statistics && i < W)
        a.statistics[i] = 0.9f * a.statistics[i] + 0.1f * value;
}

/* Optional pointers of a by-value struct are NULL at first, and set from iteration 6 on. */
static int optional_pointers()
{
    chain net = make_chain(LAYERS);
    float *statistics = make<float>(LAYERS * W);
    CHECK(cudaMemset(statistics, 0, sizeof(float) * LAYERS * W));
    for (int i = 0; i < ITERATIONS + 4; i++) {
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            layer_arguments a = {net.y[l + 1], net.y[l], net.w + l * W, nullptr, nullptr, N};
            if (i >= 6) {
                a.residual = l > 3 ? net.y[l - 3] : nullptr;
                a.statistics = statistics + l * W;
            }
            forward_struct<<<blocks(N), 256>>>(a);
        }
        float loss = read_loss(net);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    print_hash("statistics", statistics, sizeof(float) * LAYERS * W);
    return finish(net);
}

struct __attribute__((packed)) packed_arguments {
    int n;
    float *y;
    short pad;
    const float *x;
    const float *w;
};

static __global__ void forward_packed(packed_arguments a)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < a.n)
        a.y[i] = soft(a.w[i % W] * a.x[i] * 2.0f + a.w[(i + 7) % W]);
}

/* Pointers in a packed struct do not lie on 8-byte boundaries. */
static int packed_struct()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            forward_packed<<<blocks(N), 256>>>({static_cast<int>(N), net.y[l + 1], 1, net.y[l], net.w + l * W});
        }
        float loss = read_loss(net);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

static __global__ void forward_range(float *first, float *last, const float *x_first, const float *x_last,
                                     const float *w)
{
    size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (float *y = first + blockIdx.x * blockDim.x + threadIdx.x; y < last; y += step) {
        const float *x = x_first + (y - first);
        if (x < x_last)
            *y = soft(w[(y - first) % W] * *x * 2.0f + w[(y - first + 7) % W]);
    }
}

/* Ranges are given by first and last, as the standard library's algorithms do. */
static int ranges()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            forward_range<<<16, 256>>>(net.y[l + 1], net.y[l + 1] + N, net.y[l], net.y[l] + N, net.w + l * W);
        }
        float loss = read_loss(net);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

/* The same; the range between the two is freed before what was made of it. */
static int ranges_freed()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            float *between = make<float>(N);
            net.y[l + 1] = make<float>(N);
            forward_range<<<16, 256>>>(between, between + N, net.y[l], net.y[l] + N, net.w + l * W);
            forward_range<<<16, 256>>>(net.y[l + 1], net.y[l + 1] + N, between, between + N, net.w + l * W);
            drop(between);
        }
        float loss = read_loss(net);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

/* Arrays counted from one: the kernels get the address before the first element. */
static __global__ void forward_from_one(float *y, const float *x, const float *w, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x + 1;
    if (i <= n)
        y[i] = soft(w[(i - 1) % W] * x[i] * 2.0f + w[(i + 6) % W]);
}

static int from_one()
{
    chain net = make_chain(LAYERS);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        for (int l = 0; l < LAYERS; l++) {
            net.y[l + 1] = make<float>(N);
            forward_from_one<<<blocks(N), 256>>>(net.y[l + 1] - 1, net.y[l] - 1, net.w + l * W, N);
        }
        float loss = read_loss(net);
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a\n", i, static_cast<double>(loss));
    }
    return finish(net);
}

struct pointer_list {
    float *at[6];
    int sizes[6];
};

static __global__ void scale_many(pointer_list list, int count, float factor)
{
    for (int t = blockIdx.x; t < count; t += gridDim.x)
        for (int i = threadIdx.x; i < list.sizes[t]; i += blockDim.x)
            list.at[t][i] *= factor;
}

/* Lists of tensors by value, as fused optimisers pass them; updates in place, and a table from the host. */
static int multi_tensor()
{
    chain net = make_chain(LAYERS);
    float **table = make<float *>(64), *out = make<float>(W);
    for (int i = 0; i < ITERATIONS; i++) {
        upload(net, i);
        run_forward(net);
        float *host[64] = {};
        pointer_list list = {};
        for (int group = 0; group < 5; group++) {
            for (int t = 0; t < 6; t++) {
                list.at[t] = net.y[group * 6 + t + 5];
                list.sizes[t] = group * 6 + t + i < 20 ? 1000 : 32000;
            }
            host[group] = list.at[2];
            scale_many<<<8, 256>>>(list, 6, 1.0f + 0.01f * i);
        }
        float loss = read_loss(net), sum = 0.0f;
        if (i % 4 == 3) {
            CHECK(cudaMemcpy(table, host, sizeof host, cudaMemcpyHostToDevice));
            sum = through(out, table, i % 5, N);
        }
        run_backward(net);
        run_step(net);
        printf("iter %d loss %a sum %a\n", i, static_cast<double>(loss), static_cast<double>(sum));
    }
    return finish(net);
}

int main(int argc, char **argv)
{
    const hard_case cases[] = {{"chosen-early", chosen_early},
                               {"chosen-late", chosen_late},
                               {"followed-in-backward", followed_in_backward},
                               {"long-table", long_table},
                               {"followed-later", followed_later},
                               {"linked-list", linked_list},
                               {"optional-pointers", optional_pointers},
                               {"packed-struct", packed_struct},
                               {"ranges", ranges},
                               {"ranges-freed", ranges_freed},
                               {"from-one", from_one},
                               {"multi-tensor", multi_tensor}};
    return run_case(cases, argc, argv);
}
