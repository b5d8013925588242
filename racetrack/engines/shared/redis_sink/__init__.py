"""Code shared by engines that write their views into Redis, as in Yahoo's original benchmark.

The data in Redis has the format of the original benchmark:

- Set `campaigns`: all campaign ids. The generator fills it.
- Key `<ad_id>`: the id of the ad's campaign. The generator fills it.
- Hash `<campaign_id>`: the field `<window start in ms>` contains the name of the window's hash, and
  the field `windows` contains the name of a list of all window starts.
- Hash of a window: `seen_count` and `time_updated` (epoch ms).

To report progress to the harness, an engine adds two commands to each transaction (MULTI) that
writes counts:

- It sets the field `<partition>` of the hash `ad_events_progress` to `{"total": …,
  "max_received_at": …}`: the number of events of the partition that have been counted (all events,
  not only views), and their largest `event_time` (epoch ms).
- `PUBLISH ad_events_progress {"partition": …, "total": …, "max_received_at": …}`.
"""
