"""Writes the small files that data's tests read. Needs NumPy and SciPy.

The pickles are what today's libraries write, at every protocol; files of the
age of Planetoid (Python 2, protocol 2) are the real data sets themselves.
"""
import collections, os, pickle
import numpy as np, scipy.sparse as sp

here = os.path.dirname(os.path.abspath(__file__))
def path(*p):
    q = os.path.join(here, *p); os.makedirs(os.path.dirname(q), exist_ok=True); return q

# 8 nodes, 2 classes, 4 columns. Test nodes are 4, 5 and 7; the index skips 6.
x = np.arange(32, dtype='f4').reshape(8, 4) % 5
y = np.eye(2, dtype='i4')[[0, 1, 0, 1, 0, 1, 0, 1]]
graph = collections.defaultdict(list, {0: [1, 2, 0], 1: [0, 3, 3], 2: [0], 3: [1, 4], 4: [3, 5], 5: [4], 6: [6], 7: [5]})
order = [7, 4, 5]
def planetoid(name, protocol):
    objs = dict(x=sp.csr_matrix(x[:2]), y=y[:2], allx=sp.csr_matrix(x[:4]), ally=y[:4],
                tx=sp.csr_matrix(x[order]), ty=y[order], graph=graph)
    for k, v in objs.items():
        with open(path(name, f'ind.tiny.{k}'), 'wb') as f: pickle.dump(v, f, protocol)
    with open(path(name, 'ind.tiny.test.index'), 'w') as f: f.write(''.join(f'{i}\n' for i in order))
for p in range(5): planetoid(f'planetoid-p{p}', p)

rng = np.random.default_rng(0)
masks = np.zeros((2, 8), bool); masks[0, :4] = 1; masks[1, 4:] = 1
np.savez_compressed(path('heterophilous.npz'), node_features=x, node_labels=np.arange(8) % 2,
    edges=np.array([[0, 1], [1, 0], [1, 2], [2, 2], [3, 4], [3, 4], [5, 6]]),
    train_masks=np.asfortranarray(masks), val_masks=np.zeros((2, 8), bool), test_masks=~masks)
A = sp.csr_matrix((np.ones(5, 'f4'), ([0, 1, 2, 3, 4], [1, 0, 3, 3, 5])), shape=(8, 8)); X = sp.csr_matrix(x.astype('f8'))
np.savez_compressed(path('csr.npz'), adj_data=A.data, adj_indices=A.indices, adj_indptr=A.indptr.astype('i8'), adj_shape=np.array(A.shape),
    attr_data=X.data, attr_indices=X.indices, attr_indptr=X.indptr, attr_shape=np.array(X.shape), labels=np.arange(8) % 3)

np.save(path('folder-npy', 'features.npy'), np.asfortranarray(x[:4]).astype('>f8'))
with open(path('folder-npy', 'edges.csv'), 'w') as f: f.write('source,target\n0,1\n1,2\n')
sp.save_npz(path('folder-npz', 'features.npz'), sp.csr_matrix(x[:4]))
with open(path('folder-npz', 'edges.csv'), 'w') as f: f.write('p1,p2,0.5\np2,p1,0.25\n')
with open(path('folder-npz', 'nodes.csv'), 'w') as f: f.write('id,label\np1,cat\np2,dog\np3,?\np4,cat\n')
sp.save_npz(path('csc.npz'), sp.csc_matrix(x[:4]))
np.savez(path('dense.npz'), x[:4])

# Pickles of things that a reader must refuse or may meet.
class Evil:
    def __reduce__(self): return (os.system, ('echo owned',))
for name, obj, p in [('evil', Evil(), 2), ('object-array', np.array([{}, None], dtype=object), 2), ('structured', np.zeros(2, dtype=[('a', 'i4'), ('b', 'f4')]), 2),
                     ('protocol5', np.arange(3), 5), ('big-int', {2**70: []}, 2), ('numpy-ints', {np.int64(0): [np.int64(1)], 1: [0]}, 2), ('ordered', collections.OrderedDict({0: [1]}), 4)]:
    with open(path('pickles', name + '.pkl'), 'wb') as f: pickle.dump(obj, f, p)
