/* What the device says of itself. Fixed, whatever the host is: a program that sizes its grids by them gives the
 * same bits everywhere. */
#pragma once

#define LIMIT_PROCESSORS            4
#define LIMIT_THREADS_PER_PROCESSOR 2048
#define LIMIT_BLOCKS_PER_PROCESSOR  32
#define LIMIT_THREADS_PER_BLOCK     1024
#define LIMIT_BLOCK_X               1024
#define LIMIT_BLOCK_Y               1024
#define LIMIT_BLOCK_Z               64
#define LIMIT_GRID_X                2147483647
#define LIMIT_GRID_Y                65535
#define LIMIT_GRID_Z                65535
#define LIMIT_WARP                  32
#define LIMIT_SHARED_PER_BLOCK      (48 << 10)
#define LIMIT_SHARED_OPTIN          (227 << 10)
#define LIMIT_SHARED_PER_PROCESSOR  (228 << 10)
#define LIMIT_SHARED_RESERVED       1024
#define LIMIT_REGISTERS             65536
#define LIMIT_CONSTANT_BYTES        65536
