package racetrack.kstreams;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import racetrack.kstreams.Pageview.View;
import racetrack.kstreams.Shop.Email;
import racetrack.kstreams.Shop.EnrichedView;
import racetrack.kstreams.Shop.Place;
import racetrack.kstreams.Shop.ProfileView;

/**
 * Maintains two views: the last ten views of each profile, and the same rows with the emails of the
 * profile's owner and of the viewer.
 *
 * <p>Two foreign-key joins of tables would have the same result, but would send about a dozen
 * messages through Kafka for each view of a profile. Here, each task knows all users, so it needs
 * no such messages. When an email changes, an index finds the rows that contain it. All data in
 * memory is also in state stores.
 *
 * <p>Each task receives the profile views of some owners, and all users.
 */
final class LastViews extends ContextualProcessor<Long, Object, Object, Object> {
  private static final int LIMIT = 10;
  private static final String VIEWS = "last-views";
  private static final String EMAILS = "emails";
  private static final Serde<List<View>> VIEWS_SERDE =
      Compact.ofSize(
          views -> View.BYTES * views.size(),
          (buffer, views) -> views.forEach(view -> view.write(buffer)),
          buffer -> {
            List<View> found = new ArrayList<>();
            while (buffer.hasRemaining()) {
              found.add(View.read(buffer));
            }
            return found;
          });

  private final Supplier of;
  private final Map<Long, String> emailOf = new HashMap<>();
  /** Viewer → owner of rows that contain the viewer → number of these rows. */
  private final Map<Long, Map<Long, Integer>> shownTo = new HashMap<>();

  private KeyValueStore<Long, List<View>> lastOf;
  private KeyValueStore<Long, Email> emails;

  private LastViews(Supplier of) {
    this.of = of;
  }

  @Override
  public void init(ProcessorContext<Object, Object> context) {
    super.init(context);
    lastOf = context.getStateStore(VIEWS);
    emails = context.getStateStore(EMAILS);
    try (var all = emails.all()) {
      all.forEachRemaining(each -> emailOf.put(each.key, each.value.email()));
    }
    try (var all = lastOf.all()) {
      all.forEachRemaining(each -> each.value.forEach(view -> index(each.key, view, 1)));
    }
  }

  @Override
  public void process(Record<Long, Object> record) {
    if (record.value() instanceof View view) {
      take(record.key(), view, record.timestamp());
    } else if (record.value() instanceof Email email) {
      take(record.key(), email.email(), record.timestamp());
    }
  }

  private void take(long owner, View view, long timestamp) {
    List<View> views = lastOf.get(owner);
    if (views == null) {
      views = new ArrayList<>();
    }
    int place = Collections.binarySearch(views, view);
    if (place >= 0) {
      // Processed again after a kill: its rows may not have been sent, though it was stored.
      show(owner, view, timestamp);
      return;
    }
    if (views.size() == LIMIT && view.compareTo(views.get(0)) < 0) {
      return;
    }
    views.add(-place - 1, view);
    // Delete the row that leaves the list before adding one, so that readers never see more than
    // ten.
    if (views.size() > LIMIT) {
      View gone = views.remove(0);
      index(owner, gone, -1);
      context().forward(new Record<>(placeOf(gone), null, timestamp), of.plain);
      context().forward(new Record<>(placeOf(gone), null, timestamp), of.enriched);
    }
    index(owner, view, 1);
    show(owner, view, timestamp);
    lastOf.put(owner, views);
  }

  private void take(long user, String email, long timestamp) {
    if (Objects.equals(emailOf.put(user, email), email)) {
      return;
    }
    emails.put(user, new Email(email));
    Set<Long> owners = shownTo.getOrDefault(user, Map.of()).keySet();
    for (long owner : owners) {
      lastOf.get(owner).stream()
          .filter(view -> view.viewerId() == user)
          .forEach(view -> showEnriched(owner, view, timestamp));
    }
    List<View> own = lastOf.get(user);
    if (own != null) {
      own.forEach(view -> showEnriched(user, view, timestamp));
    }
  }

  private void show(long owner, View view, long timestamp) {
    ProfileView row = ProfileView.of(owner, view);
    context().forward(new Record<>(placeOf(view), row, timestamp), of.plain);
    showEnriched(owner, view, timestamp);
  }

  private void showEnriched(long owner, View view, long timestamp) {
    EnrichedView row =
        EnrichedView.of(owner, view, emailOf.get(owner), emailOf.get(view.viewerId()));
    context().forward(new Record<>(placeOf(view), row, timestamp), of.enriched);
  }

  private void index(long owner, View view, int rows) {
    Map<Long, Integer> owners = shownTo.computeIfAbsent(view.viewerId(), key -> new HashMap<>());
    owners.merge(owner, rows, (a, b) -> a + b == 0 ? null : a + b);
    if (owners.isEmpty()) {
      shownTo.remove(view.viewerId());
    }
  }

  private static Place placeOf(View view) {
    return new Place(view.partition(), view.offset());
  }

  /** `plain` and `enriched` are the names of the two views, without and with emails. */
  record Supplier(TopologyContext topology, String plain, String enriched)
      implements ProcessorSupplier<Long, Object, Object, Object> {
    @Override
    public Processor<Long, Object, Object, Object> get() {
      return new LastViews(this);
    }

    @Override
    public Set<StoreBuilder<?>> stores() {
      return Set.of(
          topology.store(VIEWS, Serdes.Long(), VIEWS_SERDE),
          topology.uncachedStore(EMAILS, Serdes.Long(), Email.SERDE));
    }
  }
}
