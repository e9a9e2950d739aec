package tidy

// modulePath is the import path of this repository.
const modulePath = "strandline.dev"

// unranked marks packages that only tests and tools use; nothing that ships may import them.
const unranked = -1

// rule says what one package of the table may do.
type rule struct {
	rank int
	pure bool     // a core: no goroutine, lock, clock, disk, socket or randomness
	also []string // further imports of a pure package; a trailing slash stands for everything below
}

// packages is the table of architecture section 2: a package imports only lower ranks. Sub-packages (a/b) share the rank
// and the family of a; systest is for tests alone.
var packages = map[string]rule{
	"internal/kafka":       {rank: 0, pure: true, also: []string{"encoding/base64", "encoding/hex"}}, // ids as text
	"internal/wire":        {rank: 1, pure: true, also: []string{"io"}},                              // io.Reader: frames come from one
	"internal/record":      {rank: 1, pure: true, also: codecImports},
	"internal/config":      {rank: 1, pure: true},
	"internal/config/load": {rank: 1},
	"internal/sys":         {rank: 1},
	"internal/sys/sealed":  {rank: 1},
	"internal/sys/systest": {rank: unranked},
	"internal/metrics":     {rank: 1},
	"internal/metadata":    {rank: 2, pure: true},
	"internal/isr":         {rank: 2, pure: true},
	"internal/recordid":    {rank: 2, pure: true, also: []string{"crypto/sha256"}},
	"internal/group":       {rank: 2, pure: true},
	"internal/plan":        {rank: 1, pure: true},
	"internal/txn":         {rank: 2, pure: true},
	"internal/auth":        {rank: 3},
	"internal/auth/certs":  {rank: 3},
	"internal/auth/certs/certstest": {
		rank: unranked,
	},
	"internal/quota":       {rank: 3},
	"internal/storage":     {rank: 3},
	"internal/peer":        {rank: 4},
	"internal/quorum":      {rank: 5},
	"internal/replica":     {rank: 5},
	"internal/coordinator": {rank: 6},
	"internal/controller":  {rank: 6},
	"internal/audit":       {rank: 6},
	"internal/server":      {rank: 7},
	"internal/canary":      {rank: 8},
	"internal/rest":        {rank: 8},
	"internal/rest/console": {
		rank: 8,
	},
	"internal/node":  {rank: 9},
	"internal/sim":   {rank: unranked},
	"internal/tidy":  {rank: unranked},
	"client":         {rank: 10},
	"embedded":       {rank: 10},
	"cmd/strandline": {rank: 11},
}

// codecImports is what compressing takes: the codecs, their readers and writers, and pools for their big states.
var codecImports = []string{"sync", "io", "compress/gzip", "github.com/klauspost/compress/", "github.com/pierrec/lz4/"}

// pureImports is all that every pure package may import from outside, apart from lower pure packages.
var pureImports = []string{
	"bytes", "cmp", "encoding/binary", "errors", "fmt", "hash/crc32", "iter", "maps", "math", "math/bits", "net/netip", "regexp", "regexp/syntax",
	"slices", "sort", "strconv", "strings", "time", "unicode/utf8", "github.com/twmb/franz-go/pkg/kmsg",
}

// impureCalls are functions of allowed packages that look at a clock, wait, or write.
var impureCalls = map[string][]string{
	"time": {"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker", "LoadLocation"},
	"fmt":  {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
	// record may pool buffers; a lock in a core would mean that somebody shares it.
	"sync": {"Mutex", "RWMutex", "WaitGroup", "Cond", "Map"},
}

// machineDoors are the functions that open files and sockets. Everything but the packages of machineUsers goes through sys.
var machineDoors = map[string][]string{
	"os": {
		"Open", "OpenFile", "OpenRoot", "OpenInRoot", "Create", "CreateTemp", "ReadFile", "WriteFile", "ReadDir", "Mkdir", "MkdirAll",
		"MkdirTemp", "Remove", "RemoveAll", "Rename", "Truncate", "Stat", "Lstat", "Link", "Symlink", "Chmod", "Chtimes", "DirFS", "CopyFS",
	},
	"net": {
		"Listen", "ListenTCP", "ListenUDP", "ListenUnix", "ListenPacket", "ListenConfig", "Dial", "DialTimeout", "DialTCP",
		"DialUDP", "DialUnix", "Dialer", "FileListener", "FileConn",
	},
	"net/http": {
		"ListenAndServe", "ListenAndServeTLS", "Get", "Head", "Post", "PostForm", "DefaultClient", "DefaultTransport",
	},
	"crypto/tls": {"Dial", "DialWithDialer", "Dialer", "Listen", "LoadX509KeyPair"},
	"io/ioutil":  {"ReadFile", "WriteFile", "ReadDir", "TempDir", "TempFile"},
}

// machineImports reach the machine whatever is called in them.
var machineImports = []string{"syscall", "golang.org/x/sys/", "os/exec"}

// machineUsers are the directories that may open files and sockets themselves, with everything below them. Tests may too.
var machineUsers = []string{"internal/sys", "internal/tidy", "internal/sim", "cmd", "embedded", "test", "bench"}

// bannedPackages are names that say nothing about what a package knows.
var bannedPackages = []string{
	"broker", "common", "util", "utils", "types", "manager", "interfaces", "helper", "helpers", "misc", "shared", "base",
}

// bannedTypeEnds are ends of type names that say nothing about what a type is.
var bannedTypeEnds = []string{"Manager", "Helper", "Util", "Utils", "Data", "Info", "Impl"}

// publicPackages show only their own types and those of the standard library and public modules.
var publicPackages = []string{"client", "embedded"}

// Sizes; the reasons are in the style page. A function of functionLines lines is too long, the others are the largest allowed.
const (
	functionLines    = 70
	fileLinesMax     = 800
	testLinesMax     = 1000
	interfaceMax     = 7
	parametersMax    = 5
	requirementsLast = 187 // R1..R187, one row each in docs/guarantees.md
)
