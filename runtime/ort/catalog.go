package ort

// Version is the onnxruntime release that Ensure fetches, and the one that gsrc
// is tested with.
const Version = "1.27.0"

// The C interface that the Go binding asks for is number 24, which releases
// from 1.24 on offer.
const (
	minMajor = 1
	minMinor = 24
)

// origin is one way to obtain the library for one platform. Both checksums are
// SHA-256 in hex; a file that does not match is refused.
type origin struct {
	kind          originKind
	archive       string // file name within a release; unused for packages
	archiveSHA256 string
	member        string // path of the library inside the archive
	librarySHA256 string // of the extracted library; empty where only the archive is pinned
	wheelTags     []string
}

type originKind string

const (
	originRelease originKind = "Microsoft's release archive"
	originWheel   originKind = "Python wheel onnxruntime " + Version
)

const releaseURL = "https://github.com/microsoft/onnxruntime/releases/download/v" + Version + "/"

// catalog holds the pinned origins of each GOOS/GOARCH, in the order in which
// they are tried. Macs with Intel processors are absent: no package of this
// release has a library for them.
//
// The checksums of the wheels and the libraries inside them were computed from the
// packages. Those of the release archives are the ones that several independent
// projects pin. The library inside the windows/arm64 archive is covered by its
// archive's checksum alone.
var catalog = map[string][]origin{
	"linux/amd64": {
		release("linux", "linux-x64", "547e40a48f1fe73e3f812d7c88a948612c23f896b91e4e2ee1e232d7b468246f", "4061866361d9a8d2872f5f419c5515ce35a830a0c5c77ce1723320ac0dbabfc7"),
		wheel("linux", "e4f7b0e90d2d212e2c2deaa6c8291616183ab815d3ec558ea12d3ac8b26d36f4", "b5c9d4f124d24707f514dad926dc181820807178855df1c528e3addb2dd0e6f7", "manylinux_2_28_x86_64", "manylinux_2_27_x86_64"),
	},
	"linux/arm64": {
		release("linux", "linux-aarch64", "3e4d83ac06924a32a07b6d7f91ce6f852876153fc0bbdf931bf517a140bfbe48", "c36bc200e7e6c093b8abb0b34590fbdd8c52fd3fb5e33795b9523ffdde2fce0f"),
		wheel("linux", "2eb083321af8a236a84c7c140a7f4cecbfa2a987a18c07c78db471c20cd390ef", "9275ef52956228686ae47b0219f67476a1148505084bdc5571e7bf1bf69b11f2", "manylinux_2_28_aarch64", "manylinux_2_27_aarch64"),
	},
	"darwin/arm64": {
		release("darwin", "osx-arm64", "545e81c58152353acb0d1e8bd6ce4b62f830c0961f5b3acfedc790ffd76e477a", "299e5a2c6ea00531ecd6bf3217e23798c1fcba1698bb386d313c8e16d7317d60"),
		wheel("darwin", "8ba14a38c570087f3cdb8cfba33f7a38a1e826c1e5b29e17c28ceda0cc910016", "3d832017d60a8a1e078f7051ea3601374453f5451ffe95b70db1131aa7d37e06", "macosx_14_0_arm64"),
	},
	"windows/amd64": {
		release("windows", "win-x64", "c5c81710938e68079ff1a192b04897faabe4b43830d48f39f27ecd4e16138bfc", "fd6dd0a8b1f5562d642abdcbd36bc54251482d2ebaa3f4f88669bfdad92e7525"),
		wheel("windows", "ff050e4f6bf7f12918fa14dcb047c0b02e295f35e86d42532552be4b3d54e977", "7b9ef55ecaa67ea48e7b0cbe06c926a2046510eef45bbddc35bb9b02f6de3f81", "win_amd64"),
	},
	"windows/arm64": {
		release("windows", "win-arm64", "a32f2650575b3c20df462e337519fd1cc4105356130d11dba9771c6f374d952f", ""),
		wheel("windows", "75fbc1e1fb43a39a856c8209c544cca7817b5de7ac16b15b1bdf55d1cc67b9df", "17db1cb527389a0b50ffcf34425543c70167b8d2dc64385d0fe7302f151baa89", "win_arm64"),
	},
}

// release is the archive of Microsoft's release for one target.
func release(goos, target, archiveSHA256, librarySHA256 string) origin {
	name, suffix := "onnxruntime-"+target+"-"+Version, ".tgz"
	if goos == "windows" {
		suffix = ".zip"
	}
	return origin{kind: originRelease, archive: name + suffix, archiveSHA256: archiveSHA256,
		member: name + "/lib/" + cachedName(goos), librarySHA256: librarySHA256}
}

// wheel is the Python package with one of the tags.
func wheel(goos, archiveSHA256, librarySHA256 string, tags ...string) origin {
	return origin{kind: originWheel, archiveSHA256: archiveSHA256,
		member: "onnxruntime/capi/" + cachedName(goos), librarySHA256: librarySHA256, wheelTags: tags}
}
