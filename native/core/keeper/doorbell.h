/* The bell of a store's keeper: a fifo in the store's folder, whose reading end the keeper holds open. */
#ifndef LOOPCANARY_DOORBELL_H
#define LOOPCANARY_DOORBELL_H

/* Rings the bell at `path`. 0: a keeper has it; ENXIO, ENOENT: there is none; EPERM: what is there is no fifo of this user's;
 * or another errno. Keeps no descriptor, allocates nothing, and waits for no reader; a disk that does not answer holds it up. */
int lc_doorbell_ring(const char *path);

#endif
