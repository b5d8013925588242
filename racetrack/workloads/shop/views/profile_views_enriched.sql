-- Each row of profile_views with both emails, where `users` has them.
SELECT viewed.*, owner.email AS owner_email, viewer.email AS viewer_email
FROM expected.profile_views AS viewed
LEFT JOIN source.users AS owner ON owner.id = viewed.owner_id
LEFT JOIN source.users AS viewer ON viewer.id = viewed.viewer_id
