package main

func sparse(s isa) {}
