# price.sh COUNT CENTS: what COUNT pieces cost; from ten on one in ten is free.
count=$1 cents=$2
free=$((count / 11))
echo $(((count - free) * cents))
