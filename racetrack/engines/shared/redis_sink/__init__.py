"""What engines share that write their views into Redis, as Yahoo's benchmark was published.

An engine writes, as published: of a campaign's hash `<campaign_id>`, the field `<window start ms>`
names the window's hash, and `windows` the list of all window starts; a window's hash holds
`seen_count` and `time_updated` (epoch ms). The generator fills the set `campaigns`, and per ad the
key `<ad_id>` with its campaign.

So that the harness can follow, an engine adds to the transaction (MULTI) that writes some counts:

- in the hash `ad_events_progress`, the field `<partition>`: `{"total": …, "max_received_at": …}`,
  of all events that have been counted of it, not only views, and the greatest `event_time` (epoch
  ms);
- `PUBLISH ad_events_progress {"partition": …, "total": …, "max_received_at": …, "at_ms": …}`, the
  last being when it was sent (epoch ms).
"""
