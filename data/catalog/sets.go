package catalog

import "fmt"

// Where the files come from.
const (
	planetoidURL     = "https://github.com/kimiyoung/planetoid/raw/master/data/"
	heterophilousURL = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data/"
	graphDataURL     = "https://github.com/EdisonLeeeee/GraphData/raw/master/datasets/"
	tuURL            = "https://www.chrsmrrs.com/graphkerneldatasets/"
	ogbURL           = "https://snap.stanford.edu/ogb/data/nodeproppred/"
)

// sets is the catalog, in the order in which it is shown.
var sets = []Set{
	planetoid("cora", "citations: 2708 papers, 7 subjects"),
	planetoid("citeseer", "citations: 3327 papers, 6 subjects"),
	planetoid("pubmed", "citations: 19,717 papers on diabetes, 3 kinds"),
	single("cornell", "web pages of a university, 5 kinds", "heterophilous/cornell.npz", heterophilousURL+"cornell.npz"),
	single("texas", "web pages of a university, 5 kinds", "heterophilous/texas.npz", heterophilousURL+"texas.npz"),
	single("wisconsin", "web pages of a university, 5 kinds", "heterophilous/wisconsin.npz", heterophilousURL+"wisconsin.npz"),
	single("actor", "actors on the same pages, 5 groups of words", "heterophilous/actor.npz", heterophilousURL+"actor.npz"),
	single("chameleon_filtered", "links between pages, without duplicates, 5 levels of traffic", "heterophilous/chameleon_filtered.npz", heterophilousURL+"chameleon_filtered.npz"),
	single("squirrel_filtered", "links between pages, without duplicates, 5 levels of traffic", "heterophilous/squirrel_filtered.npz", heterophilousURL+"squirrel_filtered.npz"),
	single("minesweeper", "a grid, where the mines are", "heterophilous/minesweeper.npz", heterophilousURL+"minesweeper.npz"),
	single("tolokers", "workers on the same tasks, who was banned", "heterophilous/tolokers.npz", heterophilousURL+"tolokers.npz"),
	single("amazon_cs", "goods bought together, computers, 10 categories", "large/amazon_cs.npz", graphDataURL+"amazon_cs.npz"),
	single("amazon_photo", "goods bought together, photo, 8 categories", "large/amazon_photo.npz", graphDataURL+"amazon_photo.npz"),
	single("coauthor_cs", "authors of joint papers, computer science, 15 fields", "large/coauthor_cs.npz", graphDataURL+"coauthor_cs.npz"),
	single("coauthor_phy", "authors of joint papers, physics, 5 fields", "large/coauthor_phy.npz", graphDataURL+"coauthor_phy.npz"),
	single("ogbn-arxiv", "citations: 169,343 papers, 40 subjects", "ogb/ogbn-arxiv.zip", ogbURL+"arxiv.zip"),
	tu("mutag", "MUTAG", "188 molecules, 2 classes"),
	tu("proteins", "PROTEINS", "1113 proteins, 2 classes"),
	tu("collab", "COLLAB", "5000 collaborations, 3 classes"),
	tu("nci1", "NCI1", "4110 molecules, 2 classes"),
	tu("enzymes", "ENZYMES", "600 proteins, 6 classes"),
	tu("imdb-binary", "IMDB-BINARY", "1000 casts of films, 2 classes"),
	tu("imdb-multi", "IMDB-MULTI", "1500 casts of films, 3 classes"),
}

// planetoid is a data set of kimiyoung/planetoid, a folder of eight files.
func planetoid(name, about string) Set {
	s := Set{Name: name, About: about, Path: "planetoid/" + name}
	for _, part := range []string{"x", "y", "tx", "ty", "allx", "ally", "graph", "test.index"} {
		file := fmt.Sprintf("ind.%s.%s", name, part)
		s.Files = append(s.Files, known(s.Path+"/"+file, planetoidURL+file))
	}
	return s
}

func single(name, about, path, url string) Set {
	return Set{Name: name, About: about, Path: path, Files: []File{known(path, url)}}
}

// tu is a collection of graphs of the TU collection.
func tu(name, file, about string) Set {
	return single(name, "graphs: "+about, "graph-classification/"+file+".zip", tuURL+file+".zip")
}

// known fills in the checksum of a file where one is known.
func known(path, url string) File {
	f := File{Path: path, URL: url}
	if c, ok := checksums[path]; ok {
		f.Size, f.SHA256 = c.size, c.sha256
	}
	return f
}

// checksums are those of the published files. A file that is not listed has none
// here because none has been verified; see [Set.Fetch].
var checksums = map[string]struct {
	size   int64
	sha256 string
}{
	"planetoid/citeseer/ind.citeseer.allx":       {595021, "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668"},
	"planetoid/citeseer/ind.citeseer.ally":       {55623, "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95"},
	"planetoid/citeseer/ind.citeseer.graph":      {61987, "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7"},
	"planetoid/citeseer/ind.citeseer.test.index": {5000, "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4"},
	"planetoid/citeseer/ind.citeseer.tx":         {260321, "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21"},
	"planetoid/citeseer/ind.citeseer.ty":         {24135, "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce"},
	"planetoid/citeseer/ind.citeseer.x":          {31087, "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6"},
	"planetoid/citeseer/ind.citeseer.y":          {3014, "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924"},
	"planetoid/cora/ind.cora.allx":               {257305, "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543"},
	"planetoid/cora/ind.cora.ally":               {47959, "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71"},
	"planetoid/cora/ind.cora.graph":              {59847, "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d"},
	"planetoid/cora/ind.cora.test.index":         {5000, "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875"},
	"planetoid/cora/ind.cora.tx":                 {148025, "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a"},
	"planetoid/cora/ind.cora.ty":                 {28135, "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad"},
	"planetoid/cora/ind.cora.x":                  {22119, "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab"},
	"planetoid/cora/ind.cora.y":                  {4054, "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1"},
	"heterophilous/actor.npz":                    {252956, "c350eef06b2c2a9bf8218be2b57cac6d4003d0922eb597a039e9123f75817816"},
	"heterophilous/cornell.npz":                  {30515, "684c54ba3daa13b0ba1f04a3d6dd1b1175c1ae9bdeb982851fd4ff96d3aac298"},
	"heterophilous/texas.npz":                    {28586, "b164b99e6c3d43e4ab07488ec59bd8c815f90cbc1bd4cf425ce587d2b534d844"},
	"heterophilous/wisconsin.npz":                {41672, "2543c89838cfc75f737f7c4664cc1d097f8268602c20b2d1bd4f21407df9c074"},
	"large/amazon_cs.npz":                        {3406100, "e7d4c76e2b139c4da9507928e962c01e8f307a13b5bdcb4e81ddf62474b0ffb1"},
	"large/coauthor_phy.npz":                     {3522187, "3b93eeae91f044b8a6a06dbd2852ffd98030ca9b1b544da1d67acbf84e28845f"},
}
