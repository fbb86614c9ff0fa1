from proto import *
d,ref=sys.argv[1:3]; t=[r for r in csv.DictReader(open(d+'/truth.csv'))]
key=lambda a,b:(min(int(a),int(b)),max(int(a),int(b)))
wrong={key(r['source'],r['target']) for r in t if r['truth']=='wrong'}; hid={key(r['source'],r['target']) for r in t if r['truth']!='wrong'}
R=[r for r in csv.DictReader(open(ref))]
old=[r for r in R if r['status']=='old']; new=[r for r in R if r['status']=='new']
y=np.array([key(r['source'],r['target']) in wrong for r in old]); k=y.sum()
def rep(n,s):
    q=np.argsort(s,kind='stable')[:k]; print('%-24s auc %.4f prec %.4f'%(n,roc_auc_score(~y,s),y[q].mean()))
p=np.array([float(r['probability']) for r in old]); rep('probability',p)
if len(sys.argv)>3:
  for c in old[0]:
    if c.startswith('evidence_'): rep(c,np.array([float(r[c]) for r in old]))
new.sort(key=lambda r:-float(r['probability'])); print('hidden found',sum(key(r['source'],r['target']) in hid for r in new[:len(hid)]),'of',len(hid))
b=np.minimum((p*10).astype(int),9); ece=sum(abs(p[b==i].mean()-(~y)[b==i].mean())*(b==i).mean() for i in range(10) if (b==i).any()); print('ece %.4f'%ece)
