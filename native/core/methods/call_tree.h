/* The words of a calls file (calls_format.h), within a window of time, as a tree: equal calls by one path are
 * one node.
 *
 * For readers, of files that may hold anything: each loop is bounded by the number of words, the stack and
 * the nodes by the limits below. Takes about 20 ms and 5 MB for 2^20 words.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/methods/calls_format.h"

enum {
    LC_TREE_NODES_MAX = 1
        << 16, /* once all are used, calls by further paths count for the call around them */
    LC_TREE_STACK_MAX = 1 << 15
};
#define LC_NO_NODE UINT32_MAX

/* What is known of the words before the first. */
typedef enum {
    /* they were overwritten: a call that ends without a begin is at least as old as the first word */
    LC_BEFORE_LOST = 0,
    LC_BEFORE_NONE = 1, /* the first word is the thread's first: each call that ends has begun in the words */
    LC_BEFORE_READ =
        2, /* they were read, up to the window's begin: a call that ends without a begin began before it */
} lc_words_before;

typedef struct {
    uint32_t id;
    uint32_t parent; /* an earlier node; LC_NO_NODE */
    uint32_t depth;
    bool is_open; /* one of its calls had not ended when the window did */
    uint64_t calls;
    uint64_t total_us;
    uint64_t inner_us; /* of total_us what the calls in it took */
} lc_call_node;

/* What runs at one moment. */
typedef struct {
    uint32_t work;   /* 0: that is not known */
    uint32_t around; /* calls that were open when it began */
} lc_calls_at_work;

/* What a callback, or all steps of a task, called. */
typedef struct {
    uint64_t times;    /* pieces of it that called something */
    uint64_t total_us; /* of the calls that they began, until other work began inside of one */
} lc_call_work;

typedef struct {
    /* Copies the words from this number on; false: they cannot be read. */
    bool (*fetch)(void *context, uint64_t from, uint64_t *into, size_t count);
    void *context;
    uint64_t first, end; /* numbers of words, `end` not among them */
    lc_words_before before;
    /* the open calls after the last word, outermost first; not needed for LC_BEFORE_NONE */
    const lc_open_call *opened;
    size_t opened_count;
    uint64_t depth;            /* how many calls are open, those that were not noted included */
    uint64_t begin_us, end_us; /* the window */
    /* before the first word; for LC_BEFORE_LOST after the last one, which is the same if no word is of work */
    lc_calls_at_work at_work;
} lc_calls_window;

typedef struct {
    lc_call_node *nodes; /* each after its parent, none longer than that */
    uint32_t count;
    uint64_t first_us;        /* time of the first word; end_us where there is none */
    uint64_t left_out;        /* calls for which there was no node */
    lc_call_work *works;      /* LC_CALLS_WORKS of them, by number less LC_CALLS_WORK */
    lc_calls_at_work at_work; /* at the end */
} lc_call_tree;

/* False: no memory, or the words could not be read; the tree is empty then. */
bool lc_call_tree_build(const lc_calls_window *window, lc_call_tree *tree);
void lc_call_tree_free(lc_call_tree *tree);

/* Keeps the `most` heaviest nodes, in the order in which they were first called, and with each all those
 * around it: no node is longer than its parent. Parents' numbers are the new ones; says how many nodes are
 * gone, and what these took by themselves. False: no memory. */
bool lc_call_tree_keep(lc_call_tree *tree, uint32_t most, uint64_t *left_out_nodes, uint64_t *left_out_us);
