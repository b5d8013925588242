#!/usr/bin/env bash
# Makes Debezium's user in MySQL, with the rights that it needs and no others. MySQL's image runs it
# once, on an empty database.
set -euo pipefail

password=${MYSQL_DEBEZIUM_PASSWORD//\\/\\\\}
password=${password//\'/\\\'}

MYSQL_PWD="$MYSQL_ROOT_PASSWORD" mysql --protocol=socket --user=root <<SQL
-- No change of the workload's data: nobody downstream needs it.
SET SESSION sql_log_bin = 0;
CREATE USER 'debezium'@'%' IDENTIFIED BY '$password';
GRANT SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT, LOCK TABLES
  ON *.* TO 'debezium'@'%';
SQL
