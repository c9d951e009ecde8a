// Command dex is the OpenID Connect server without its databases, one of which is in C. Its configuration is a JSON file.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	gosundheit "github.com/AppsFlyer/go-sundheit"
	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/dexidp/dex/web"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"golang.org/x/crypto/bcrypt"
)

// config is the content of the file.
type config struct {
	Issuer      string    `json:"issuer"`
	Address     string    `json:"address"`
	Certificate string    `json:"certificate"`
	Key         string    `json:"key"`
	Valid       string    `json:"tokensValidFor"`
	Clients     []client  `json:"clients"`
	Users       []account `json:"users"`
}

type client struct {
	ID       string `json:"id"`
	Secret   string `json:"secret"`
	Redirect string `json:"redirect"`
}

// account is a user with a password. The connector "mock" has one user more, without a password and with a group.
type account struct {
	Email    string `json:"email"`
	Password string `json:"password"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: dex FILE")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var own config
	if err := json.Unmarshal(text, &own); err != nil {
		return fmt.Errorf("cannot read %s: %w", args[0], err)
	}
	valid, err := time.ParseDuration(own.Valid)
	if err != nil {
		return fmt.Errorf("tokensValidFor: %w", err)
	}
	logger := logrus.New()
	store, err := own.storage(logger)
	if err != nil {
		return err
	}
	handler, err := server.NewServer(context.Background(), server.Config{
		Issuer:             own.Issuer,
		Storage:            store,
		SkipApprovalScreen: true,
		IDTokensValidFor:   valid,
		PasswordConnector:  server.LocalConnector,
		Web:                server.WebConfig{WebFS: web.FS()},
		Logger:             logger,
		PrometheusRegistry: prometheus.NewRegistry(),
		HealthChecker:      gosundheit.New(),
	})
	if err != nil {
		return fmt.Errorf("cannot set up the server: %w", err)
	}
	serving := http.Server{Addr: own.Address, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	return serving.ListenAndServeTLS(own.Certificate, own.Key)
}

func (own *config) storage(logger *logrus.Logger) (storage.Storage, error) {
	var clients []storage.Client
	for _, one := range own.Clients {
		clients = append(clients, storage.Client{
			ID: one.ID, Name: one.ID, Secret: one.Secret, RedirectURIs: []string{one.Redirect},
		})
	}
	var passwords []storage.Password
	for _, one := range own.Users {
		hash, err := bcrypt.GenerateFromPassword([]byte(one.Password), bcrypt.DefaultCost)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", one.Email, err)
		}
		passwords = append(passwords, storage.Password{
			Email: one.Email, Username: one.Email, UserID: one.Email, Hash: hash,
		})
	}
	store := storage.WithStaticClients(memory.New(logger), clients)
	store = storage.WithStaticPasswords(store, passwords, logger)
	return storage.WithStaticConnectors(store, []storage.Connector{
		{ID: server.LocalConnector, Name: server.LocalConnector, Type: server.LocalConnector},
		{ID: "mock", Name: "mock", Type: "mockCallback", Config: []byte("{}")},
	}), nil
}
