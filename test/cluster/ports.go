package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are chosen below the kernel's range for outgoing connections (32768 and up), so that no client takes the port of an API server
// that is away and wants it back.
const (
	firstPort = 20000
	lastPort  = 32000
	portTries = 100
)

// freePort returns a loopback port that was free a moment ago. Start tries again if somebody else was faster.
func freePort() (int, error) {
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, errors.New("find a free loopback port: none in " + fmt.Sprint(portTries) + " tries")
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
