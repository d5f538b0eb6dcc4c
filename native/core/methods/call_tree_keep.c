/* Which nodes of a tree of calls are shown. */
#include <stdlib.h>

#include "core/methods/call_tree.h"

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
