#include "core/methods/call_tree.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 15, HASH = 2 * LC_TREE_NODES_MAX };

typedef struct {
    uint32_t id, node;
    uint64_t since_us;
} frame;

typedef struct {
    const lc_calls_window *window;
    lc_call_tree *tree;
    uint32_t *hash; /* of nodes by (parent, id), plus 1 */
    uint16_t *open; /* how often each id is on the stack */
    frame *stack;
    uint32_t depth;
    uint64_t deeper; /* calls for which the stack had no room */
    uint32_t *unmatched;
    uint32_t unmatched_count;
    size_t opened_before; /* calls in window->opened that are older than the first word */
    uint64_t last_us;
    bool in_window;
    bool has_work; /* one of the words is of work */
} builder;

typedef struct {
    uint64_t words[CHUNK];
    uint64_t from, count;
} chunk;

static uint32_t id_of(uint64_t word) { return (uint32_t)(word >> LC_CALLS_TIME_BITS) & LC_CALLS_ID_MAX; }

/* A word has the lower bits of its time only: of the times with these bits the one nearest to the window's
 * end counts. Times never go back. */
static uint64_t time_of(builder *b, uint64_t word)
{
    const uint64_t near = b->window->end_us;
    const uint64_t ahead = (word - near) & LC_CALLS_TIME_MASK;
    const bool is_before = ahead >> (LC_CALLS_TIME_BITS - 1) != 0;
    const uint64_t ago = LC_CALLS_TIME_MASK + 1u - ahead;
    const uint64_t us = !is_before ? near + ahead : near > ago ? near - ago : 0;
    b->last_us = us > b->last_us ? us : b->last_us;
    return b->last_us;
}

static bool word_at(const builder *b, chunk *c, uint64_t number, uint64_t *word)
{
    if (number < c->from || number - c->from >= c->count) {
        const uint64_t left = b->window->end - number;
        c->from = number;
        c->count = left < CHUNK ? left : CHUNK;
        if (!b->window->fetch(b->window->context, number, c->words, c->count)) {
            return false;
        }
    }
    *word = c->words[number - c->from];
    return true;
}

/* ---- work --------------------------------------------------------------------------------- */

static bool is_work(uint64_t word) { return id_of(word) >= LC_CALLS_WORK; }

static lc_call_work *running_work(builder *b)
{
    const uint32_t work = b->tree->at_work.work;
    if (work < LC_CALLS_WORK) {
        return NULL;
    }
    return &b->tree->works[work - LC_CALLS_WORK < LC_CALLS_WORKS ? work - LC_CALLS_WORK
                                                                 : LC_CALLS_WORK_OTHER - LC_CALLS_WORK];
}

/* Lowers the number of calls around the running work to those that are still open. */
static void less_around(builder *b)
{
    uint32_t *around = &b->tree->at_work.around;
    *around = *around < b->depth ? *around : b->depth;
}

/* Counts a call that the running work began and that ends at `us`: its part inside the window. */
static void count_for_work(builder *b, const frame *f, uint64_t us)
{
    const uint64_t end = us < b->window->end_us ? us : b->window->end_us;
    lc_call_work *work = running_work(b);
    if (work != NULL) {
        work->total_us += end > f->since_us ? end - f->since_us : 0;
    }
}

/* Other work begins: the open call of the work before it is counted up to now. */
static void begin_work(builder *b, uint32_t number, uint64_t us)
{
    if (b->in_window && b->depth > b->tree->at_work.around) {
        count_for_work(b, &b->stack[b->tree->at_work.around], us);
    }
    b->tree->at_work = (lc_calls_at_work){number, b->depth};
    lc_call_work *work = running_work(b);
    if (b->in_window && work != NULL) {
        work->times++;
    }
}

/* ---- nodes -------------------------------------------------------------------------------- */

static uint32_t new_node(builder *b, uint32_t parent, uint32_t id)
{
    lc_call_tree *tree = b->tree;
    if (tree->count == LC_TREE_NODES_MAX) {
        return LC_NO_NODE;
    }
    const uint32_t depth = parent == LC_NO_NODE ? 0 : tree->nodes[parent].depth + 1u;
    tree->nodes[tree->count] = (lc_call_node){.id = id, .parent = parent, .depth = depth};
    return tree->count++;
}

static uint32_t node_for(builder *b, uint32_t parent, uint32_t id)
{
    uint32_t at =
        (uint32_t)(((uint64_t)parent * 0x9e3779b97f4a7c15u ^ id) * 0xff51afd7ed558ccdu >> 40) % HASH;
    while (b->hash[at] != 0) {
        const lc_call_node *node = &b->tree->nodes[b->hash[at] - 1u];
        if (node->parent == parent && node->id == id) {
            return b->hash[at] - 1u;
        }
        at = (at + 1u) % HASH;
    }
    const uint32_t node = new_node(b, parent, id);
    if (node != LC_NO_NODE) {
        b->hash[at] = node + 1u;
    }
    return node;
}

/* The node of the innermost of these calls that has one: a call without a node counts for the call around
 * it. */
static uint32_t around(const builder *b, uint32_t depth)
{
    while (depth > 0 && b->stack[depth - 1u].node == LC_NO_NODE) {
        depth--;
    }
    return depth > 0 ? b->stack[depth - 1u].node : LC_NO_NODE;
}

static void open_node(builder *b, uint32_t depth, uint64_t us)
{
    frame *f = &b->stack[depth];
    f->since_us = us > b->window->begin_us ? us : b->window->begin_us;
    f->node = node_for(b, around(b, depth), f->id);
    if (f->node == LC_NO_NODE) {
        b->tree->left_out++;
    } else {
        b->tree->nodes[f->node].calls++;
    }
}

static void close_node(builder *b, const frame *f, uint64_t us)
{
    if (f->node == LC_NO_NODE) {
        return;
    }
    const uint64_t end = us < b->window->end_us ? us : b->window->end_us;
    const uint64_t took = end > f->since_us ? end - f->since_us : 0;
    lc_call_node *node = &b->tree->nodes[f->node];
    node->total_us += took;
    if (node->parent != LC_NO_NODE) {
        b->tree->nodes[node->parent].inner_us += took;
    }
}

/* ---- the stack ---------------------------------------------------------------------------- */

static void push(builder *b, uint32_t id, uint64_t us)
{
    if (b->depth == LC_TREE_STACK_MAX) {
        b->deeper++;
        return;
    }
    const uint64_t around_us = b->depth > 0 ? b->stack[b->depth - 1u].since_us : 0;
    /* no call begins before the call around it, whatever the file says */
    us = us > around_us ? us : around_us;
    b->stack[b->depth] = (frame){id, LC_NO_NODE, us};
    b->open[id]++;
    if (b->in_window) {
        open_node(b, b->depth, us);
    }
    b->depth++;
}

static void pop(builder *b, uint64_t us)
{
    b->depth--;
    const frame *f = &b->stack[b->depth];
    b->open[f->id]--;
    if (b->in_window) {
        close_node(b, f, us);
        if (b->depth == b->tree->at_work.around) {
            count_for_work(b, f, us);
        }
    }
    less_around(b);
}

/* Ends calls down to the innermost one of this id, as lc_calls_leave does. False: no call of this id is
 * open. */
static bool leave(builder *b, uint32_t id, uint64_t us)
{
    if (b->deeper > 0) {
        b->deeper--;
        return true;
    }
    if (b->open[id] == 0) {
        return false;
    }
    while (b->stack[b->depth - 1u].id != id) {
        pop(b, us);
    }
    pop(b, us);
    return true;
}

static void empty_stack(builder *b)
{
    while (b->depth > 0) {
        b->open[b->stack[--b->depth].id]--;
    }
    b->deeper = 0;
}

/* ---- the two passes ----------------------------------------------------------------------- */

/* Whether the calls that the words leave open are window->opened from this index on. */
static bool agrees_from(const builder *b, uint64_t older)
{
    const lc_calls_window *w = b->window;
    for (uint32_t i = 0; i < b->depth && older + i < w->opened_count; i++) {
        const lc_open_call *call = &w->opened[older + i];
        if (call->id != b->stack[i].id || call->us != b->stack[i].since_us) {
            return false;
        }
    }
    return true;
}

/* First pass: finds calls that end in the words and began before them, the last one outermost. */
static bool find_unmatched(builder *b, chunk *c)
{
    const lc_calls_window *w = b->window;
    for (uint64_t i = w->first; i < w->end; i++) {
        uint64_t word;
        if (!word_at(b, c, i, &word)) {
            return false;
        }
        const uint64_t us = time_of(b, word);
        if (is_work(word)) {
            b->has_work = true;
            continue;
        }
        if (word & LC_CALLS_IN) {
            push(b, id_of(word), us);
        } else if (!leave(b, id_of(word), us) && b->unmatched_count < LC_TREE_STACK_MAX) {
            b->unmatched[b->unmatched_count++] = id_of(word);
            empty_stack(b); /* all calls that began since were inside it, and have ended with it */
        }
    }
    const uint64_t still_open = b->depth + b->deeper;
    uint64_t older = w->depth > still_open ? w->depth - still_open : 0;
    /* A thread that was killed while it noted a call may have one word more than it noted open calls. */
    older += !agrees_from(b, older) && agrees_from(b, older + 1u);
    b->opened_before = older < w->opened_count ? (size_t)older : w->opened_count;
    empty_stack(b);
    b->last_us = 0;
    return true;
}

static bool note_first(builder *b, chunk *c)
{
    uint64_t word;
    b->tree->first_us = b->window->end_us;
    if (b->window->first < b->window->end) {
        if (!word_at(b, c, b->window->first, &word)) {
            return false;
        }
        b->tree->first_us = time_of(b, word);
    }
    return true;
}

static void push_what_was_open(builder *b)
{
    const lc_calls_window *w = b->window;
    for (size_t i = 0; i < b->opened_before; i++) {
        push(b, (uint32_t)w->opened[i].id & LC_CALLS_ID_MAX, w->opened[i].us);
    }
    const uint64_t since_us = w->before == LC_BEFORE_READ ? w->begin_us : b->tree->first_us;
    for (uint32_t i = b->unmatched_count; i > 0; i--) {
        push(b, b->unmatched[i - 1u], since_us);
    }
}

static void open_window(builder *b)
{
    b->in_window = true;
    for (uint32_t depth = 0; depth < b->depth; depth++) {
        open_node(b, depth, b->stack[depth].since_us);
    }
    /* The work that runs at the begin is counted here, unless the words before were read: then it was
     * counted with those. */
    lc_call_work *work = running_work(b);
    if (work != NULL && b->depth > b->tree->at_work.around && b->window->before != LC_BEFORE_READ) {
        work->times++;
    }
}

static void close_window(builder *b)
{
    for (uint32_t depth = b->depth; depth > 0; depth--) {
        const frame *f = &b->stack[depth - 1u];
        close_node(b, f, b->window->end_us);
        if (f->node != LC_NO_NODE) {
            b->tree->nodes[f->node].is_open = true;
        }
    }
    if (b->depth > b->tree->at_work.around) {
        count_for_work(b, &b->stack[b->tree->at_work.around], b->window->end_us);
    }
}

static bool grow_tree(builder *b, chunk *c)
{
    const lc_calls_window *w = b->window;
    push_what_was_open(b);
    if (w->before != LC_BEFORE_LOST || !b->has_work) {
        b->tree->at_work = w->at_work;
    }
    less_around(b);
    for (uint64_t i = w->first; i < w->end; i++) {
        uint64_t word;
        if (!word_at(b, c, i, &word)) {
            return false;
        }
        const uint64_t us = time_of(b, word);
        if (us > w->end_us) {
            break;
        }
        if (!b->in_window && us >= w->begin_us) {
            open_window(b);
        }
        if (is_work(word)) {
            begin_work(b, id_of(word), us);
        } else if (word & LC_CALLS_IN) {
            push(b, id_of(word), us);
        } else {
            leave(b, id_of(word), us);
        }
    }
    if (!b->in_window) {
        open_window(b); /* no call began or ended in the window */
    }
    close_window(b);
    return true;
}

static bool build(builder *b, chunk *c)
{
    return note_first(b, c) && (b->window->before == LC_BEFORE_NONE || find_unmatched(b, c)) &&
           grow_tree(b, c);
}

bool lc_call_tree_build(const lc_calls_window *window, lc_call_tree *tree)
{
    memset(tree, 0, sizeof *tree);
    tree->nodes = malloc(sizeof(lc_call_node) * LC_TREE_NODES_MAX);
    tree->works = calloc(LC_CALLS_WORKS, sizeof(lc_call_work));
    builder b = {
        .window = window,
        .tree = tree,
        .hash = calloc(HASH, sizeof(uint32_t)),
        .open = calloc(LC_CALLS_ID_MAX + 1u, sizeof(uint16_t)),
        .stack = malloc(sizeof(frame) * LC_TREE_STACK_MAX),
        .unmatched = malloc(sizeof(uint32_t) * LC_TREE_STACK_MAX),
    };
    chunk *c = calloc(1, sizeof *c);
    const bool built =
        tree->nodes && tree->works && b.hash && b.open && b.stack && b.unmatched && c && build(&b, c);
    free(b.hash);
    free(b.open);
    free(b.stack);
    free(b.unmatched);
    free(c);
    if (!built) {
        lc_call_tree_free(tree);
    }
    return built;
}

void lc_call_tree_free(lc_call_tree *tree)
{
    free(tree->nodes);
    free(tree->works);
    memset(tree, 0, sizeof *tree);
}

/* ---- which nodes are shown ------------------------------------------------------------------------- */

typedef struct {
    uint64_t total_us;
    uint32_t node;
} weighed;

static int heavier(const void *left, const void *right)
{
    const weighed *a = left, *b = right;
    if (a->total_us != b->total_us) {
        return a->total_us > b->total_us ? -1 : 1;
    }
    return a->node < b->node ? -1 : 1; /* parents, which come first, before what is in them */
}

static void keep_marked(lc_call_tree *tree, uint32_t *renumbered, uint64_t *left_out_us)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < tree->count; i++) {
        lc_call_node node = tree->nodes[i];
        if (renumbered[i] == LC_NO_NODE) {
            *left_out_us += node.total_us - node.inner_us;
            continue;
        }
        node.parent = node.parent == LC_NO_NODE ? LC_NO_NODE : renumbered[node.parent];
        renumbered[i] = kept;
        tree->nodes[kept++] = node;
    }
    tree->count = kept;
}

bool lc_call_tree_keep(lc_call_tree *tree, uint32_t most, uint64_t *left_out_nodes, uint64_t *left_out_us)
{
    *left_out_nodes = *left_out_us = 0;
    if (tree->count <= most) {
        return true;
    }
    weighed *order = malloc(sizeof(weighed) * tree->count);
    uint32_t *renumbered = malloc(sizeof(uint32_t) * tree->count);
    const bool has_room = order != NULL && renumbered != NULL;
    if (has_room) {
        for (uint32_t i = 0; i < tree->count; i++) {
            order[i] = (weighed){tree->nodes[i].total_us, i};
            renumbered[i] = LC_NO_NODE;
        }
        qsort(order, tree->count, sizeof *order, heavier);
        for (uint32_t i = 0; i < most; i++) {
            renumbered[order[i].node] = 0;
        }
        *left_out_nodes = tree->count - most;
        keep_marked(tree, renumbered, left_out_us);
    }
    free(order);
    free(renumbered);
    return has_room;
}
