// Samples of nodes: the first steps of a Fisher–Yates shuffle of n nodes, which the host
// makes one after another, by a thread for each step: see runtime.AnchorDrawer.

#include "gsrc.h"

// The upper half of a product.
FN u64 upper_half(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }

// anchor_swaps draws what step i swaps the element at place i with: rng.Stream.Intn.
KERNEL gsrc_anchor_swaps(int *swap, u64 key, int n, int count) {
	for (int i = grid_first(); i < count; i += grid_step()) {
		words4 w = rng_block(key, (u64)i, 1);
		ST(swap, i, i + (int)upper_half((u64)w.w[0] | (u64)w.w[1] << 32, (u64)(n - i)));
	}
}

// The last step before one that swapped with a place, −1 if none did.
FN int last_swap(const int *swap, int before, int place) {
	int k = before - 1;
	for (; k >= 3; k -= 4) {
		int a = LD(swap, k), b = LD(swap, k - 1), c = LD(swap, k - 2), d = LD(swap, k - 3);
		if (a == place) return k;
		if (b == place) return k - 1;
		if (c == place) return k - 2;
		if (d == place) return k - 3;
	}
	while (k >= 0 && LD(swap, k) != place) k--;
	return k;
}

// anchor_nodes finds the node that each step brought to its place: what lay where it
// swapped, which is there from the beginning or came from the place of an earlier step.
KERNEL gsrc_anchor_nodes(int *node, const int *swap, int count) {
	for (int i = grid_first(); i < count; i += grid_step()) {
		int place = LD(swap, i);
		for (int step = i; (step = last_swap(swap, step, place)) >= 0;) place = step;
		ST(node, i, place);
	}
}

// anchor_sort puts every node where the number of smaller ones says.
KERNEL gsrc_anchor_sort(i64 *dst, const int *node, int count) {
	for (int i = grid_first(); i < count; i += grid_step()) {
		int v = LD(node, i), at = 0;
		for (int k = 0; k < count; k++) at += LD(node, k) < v;
		ST(dst, at, v);
	}
}
