"""lighteval adapter: conversion of AI GO tasks to lighteval documents, runs in its pipeline, and evidence."""
