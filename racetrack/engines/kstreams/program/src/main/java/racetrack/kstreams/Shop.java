package racetrack.kstreams;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import org.apache.kafka.common.serialization.Serde;

/**
 * The rows of the workload `shop`: those of MySQL's tables, and those of the views computed from
 * them.
 */
final class Shop {
  /**
   * Replaces a NULL by which rows are grouped: Kafka Streams would drop a row whose key is NULL.
   */
  static final long NO_ID = Long.MIN_VALUE;

  private Shop() {}

  static long keyOf(Long id) {
    return id == null ? NO_ID : id;
  }

  static Long idOf(long key) {
    return key == NO_ID ? null : key;
  }

  // In these tables, every column except the key may be NULL.
  record User(long id, String email, Integer isVip, String createdAt, Long updatedAt) {}

  record Item(
      long id,
      String name,
      String category,
      BigDecimal price,
      Integer inventory,
      String inventoryUpdatedAt,
      String createdAt,
      Long updatedAt) {}

  record Purchase(
      long id,
      Long userId,
      Long itemId,
      Integer status,
      Long quantity,
      BigDecimal purchasePrice,
      Integer deleted,
      String createdAt,
      Long updatedAt) {}

  /**
   * Totals of an item's purchases. As in SQL, a NULL adds nothing to a sum, and a sum of only NULLs
   * is NULL.
   */
  record Sold(BigDecimal revenue, long prices, long orders, long itemsSold, long quantities) {
    static final Serde<Sold> SERDE =
        Compact.ofRow(
            (out, sold) -> {
              Compact.write(out, sold.revenue);
              out.writeLong(sold.prices);
              out.writeLong(sold.orders);
              out.writeLong(sold.itemsSold);
              out.writeLong(sold.quantities);
            },
            in ->
                new Sold(
                    Compact.readDecimal(in),
                    in.readLong(),
                    in.readLong(),
                    in.readLong(),
                    in.readLong()));

    static final Sold NONE = new Sold(BigDecimal.ZERO, 0, 0, 0, 0);

    static Sold plus(long item, Purchase one, Sold sold) {
      return sold.with(one, 1);
    }

    static Sold minus(long item, Purchase one, Sold sold) {
      return sold.orders == 1 ? null : sold.with(one, -1);
    }

    private Sold with(Purchase one, int sign) {
      BigDecimal price = one.purchasePrice;
      Long quantity = one.quantity;
      return new Sold(
          price == null ? revenue : sign > 0 ? revenue.add(price) : revenue.subtract(price),
          price == null ? prices : prices + sign,
          orders + sign,
          quantity == null ? itemsSold : itemsSold + sign * quantity,
          quantity == null ? quantities : quantities + sign);
    }
  }

  /** A row of the view purchases_by_item. An item without orders has no row. */
  record Sales(Long itemId, BigDecimal revenue, long orders, Long itemsSold) {
    static Sales of(long key, Sold sold) {
      return new Sales(
          idOf(key),
          sold.prices == 0 ? null : sold.revenue,
          sold.orders,
          sold.quantities == 0 ? null : sold.itemsSold);
    }
  }

  record ItemViews(long itemId, long pageviews) {}

  /** A row of the view item_summary, and of the two top lists. */
  record ItemSummary(
      long itemId,
      String name,
      String category,
      BigDecimal revenue,
      long orders,
      long itemsSold,
      long pageviews,
      Double conversionRate) {

    static final Serde<ItemSummary> SERDE = 
        Compact.ofRow((out, row) -> row.write(out), ItemSummary::read);

    /** The row of an item that nobody has bought or viewed. */
    static ItemSummary of(Item item) {
      return item == null
          ? null
          : new ItemSummary(
              item.id, item.name, item.category, Sold.NONE.revenue, 0, 0, 0, null);
    }

    ItemSummary with(Sold sold) {
      return sold == null
          ? this
          : new ItemSummary(
              itemId,
              name,
              category,
              sold.revenue,
              sold.orders,
              sold.itemsSold,
              pageviews,
              conversionRate);
    }

    ItemSummary with(Long views) {
      long count = views == null ? 0 : views;
      Double rate = count == 0 ? null : (double) orders / count;
      return new ItemSummary(
          itemId, name, category, revenue, orders, itemsSold, count, rate);
    }

    private void write(DataOutputStream out) throws IOException {
      out.writeLong(itemId);
      Compact.write(out, name);
      Compact.write(out, category);
      Compact.write(out, revenue);
      out.writeLong(orders);
      out.writeLong(itemsSold);
      out.writeLong(pageviews);
    }

    private static ItemSummary read(DataInputStream in) throws IOException {
      return new ItemSummary(
              in.readLong(),
              Compact.readText(in),
              Compact.readText(in),
              Compact.readDecimal(in),
              in.readLong(),
              in.readLong(),
              0,
              null)
          .with(in.readLong());
    }
  }

  /**
   * Totals of a user's purchases. The lifetime value is the sum of price times quantity, as in the
   * demo.
   */
  record Worth(long id, BigDecimal lifetimeValue, long purchases) {
    static final Worth NONE = new Worth(0, BigDecimal.ZERO, 0);
    private static final BigDecimal HIGH = BigDecimal.valueOf(10_000);

    static Worth plus(long user, Purchase one, Worth worth) {
      return new Worth(user, worth.lifetimeValue.add(valueOf(one)), worth.purchases + 1);
    }

    static Worth minus(long user, Purchase one, Worth worth) {
      return worth.purchases == 1
          ? null
          : new Worth(user, worth.lifetimeValue.subtract(valueOf(one)), worth.purchases - 1);
    }

    boolean isHigh() {
      return lifetimeValue.compareTo(HIGH) > 0;
    }

    private static BigDecimal valueOf(Purchase one) {
      return one.purchasePrice == null || one.quantity == null
          ? BigDecimal.ZERO
          : one.purchasePrice.multiply(BigDecimal.valueOf(one.quantity));
    }
  }

  record HighValueUser(Long id, String email, BigDecimal lifetimeValue, long purchases) {
    static HighValueUser of(Worth worth, User user) {
      String email = user == null ? null : user.email;
      return new HighValueUser(idOf(worth.id), email, worth.lifetimeValue, worth.purchases);
    }
  }

  /** The position of a pageview in the main topic, which identifies it. */
  record Place(int partition, long offset) {}

  record ProfileView(long ownerId, long viewerId, long receivedAt, int partition, long offset) {
    static ProfileView of(long owner, Pageview.View view) {
      return new ProfileView(
          owner, view.viewerId(), view.receivedAt(), view.partition(), view.offset());
    }
  }

  record EnrichedView(
      long ownerId,
      long viewerId,
      long receivedAt,
      int partition,
      long offset,
      String ownerEmail,
      String viewerEmail) {
    static EnrichedView of(long owner, Pageview.View view, String ownerEmail, String viewerEmail) {
      return new EnrichedView(
          owner,
          view.viewerId(),
          view.receivedAt(),
          view.partition(),
          view.offset(),
          ownerEmail,
          viewerEmail);
    }
  }

  /** The email of a user; null if there is no such user. */
  record Email(String email) {
    static final Serde<Email> SERDE = Json.of(Email.class);

    static Email of(User user) {
      return new Email(user == null ? null : user.email);
    }
  }

  record Minute(long userId, long receivedAtMinute) {}

  record MinuteViews(long userId, long receivedAtMinute, long pageviews) {}

  record FlaggedProfile(long userId) {}

  record FlaggedView(
      long userId,
      String url,
      String channel,
      long receivedAt,
      int partition,
      long offset,
      String pageviewType,
      Long targetId) {
    static FlaggedView of(Pageview pageview) {
      return new FlaggedView(
          pageview.userId(),
          pageview.url(),
          pageview.channel(),
          pageview.receivedAt(),
          pageview.partition(),
          pageview.offset(),
          pageview.pageviewType(),
          pageview.targetId());
    }
  }
}
