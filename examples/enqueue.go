// Enqueues a job from Go, by the command weir enqueue. See doc/producing.md.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os/exec"
	"strings"
)

func enqueue(jobType string, args any, flags ...string) (string, error) {
	body, err := json.Marshal(args)
	if err != nil {
		return "", err
	}
	cmd := exec.Command("weir", append([]string{"enqueue", jobType, "-"}, flags...)...)
	cmd.Stdin = bytes.NewReader(body)
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

func main() {
	id, err := enqueue("remind", map[string]string{"text": "pay"}, "--in", "2h", "--unique", "account-7")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id)
}
