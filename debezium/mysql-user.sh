#!/usr/bin/env bash
# Creates Debezium's user in MySQL, with only the rights that it needs. MySQL's image runs this
# script once, on an empty database.
set -euo pipefail

password=${MYSQL_DEBEZIUM_PASSWORD//\\/\\\\}
password=${password//\'/\\\'}

MYSQL_PWD="$MYSQL_ROOT_PASSWORD" mysql --protocol=socket --user=root <<SQL
-- Keep this user out of the change log: it is not part of the workload's data.
SET SESSION sql_log_bin = 0;
CREATE USER 'debezium'@'%' IDENTIFIED BY '$password';
GRANT SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT, LOCK TABLES
  ON *.* TO 'debezium'@'%';
SQL
