"""Generated from proto/ by clients/python/generate.sh. Do not edit."""
