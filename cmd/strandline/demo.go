package main

import "github.com/spf13/cobra"

func newDemoCommand(a *app) *cobra.Command { return &cobra.Command{Use: "demo"} }
