echo mapped > "$1"
