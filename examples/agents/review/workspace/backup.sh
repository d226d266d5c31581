#!/bin/sh
# Stores the data of the service.
set -eu

tar -czf "/var/backups/data.tar.gz" /srv/data
