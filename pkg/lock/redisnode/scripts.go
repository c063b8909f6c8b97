package redisnode

import (
	"crypto/sha1" //nolint:gosec // the name Redis gives a script
	_ "embed"
	"encoding/hex"
)

//go:embed scripts/common.lua
var commonLua string

//go:embed scripts/acquire.lua
var acquireLua string

//go:embed scripts/renew.lua
var renewLua string

//go:embed scripts/release.lua
var releaseLua string

//go:embed scripts/abandon.lua
var abandonLua string

//go:embed scripts/inspect.lua
var inspectLua string

//go:embed scripts/tick.lua
var tickLua string

//go:embed scripts/tickacquire.lua
var tickAcquireLua string

//go:embed scripts/tickstamp.lua
var tickStampLua string

//go:embed scripts/tickrelease.lua
var tickReleaseLua string

//go:embed scripts/tickabandon.lua
var tickAbandonLua string

//go:embed scripts/tickinspect.lua
var tickInspectLua string

//go:embed scripts/announce.lua
var announceLua string

var (
	acquireScript  = newScript(commonLua + acquireLua)
	renewScript    = newScript(commonLua + renewLua)
	releaseScript  = newScript(commonLua + releaseLua)
	abandonScript  = newScript(commonLua + abandonLua)
	inspectScript  = newScript(commonLua + inspectLua)
	announceScript = newScript(announceLua)

	tickAcquireScript = newScript(commonLua + tickLua + tickAcquireLua)
	tickStampScript   = newScript(commonLua + tickLua + tickStampLua)
	tickReleaseScript = newScript(commonLua + tickLua + tickReleaseLua)
	tickAbandonScript = newScript(commonLua + tickLua + tickAbandonLua)
	tickInspectScript = newScript(commonLua + tickLua + tickInspectLua)
)

// script is a program and the name under which a server that ran it before knows it. All of ours may run twice with one effect.
type script struct{ text, sha string }

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see the import
	return &script{text: text, sha: hex.EncodeToString(sum[:])}
}
