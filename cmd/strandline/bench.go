package main

import "github.com/spf13/cobra"

func newBenchCommand(a *app) *cobra.Command { return &cobra.Command{Use: "bench"} }
