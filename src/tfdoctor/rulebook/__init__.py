"""The rules that apply: built in and own ones, as the configuration chooses and sets them."""
