package racetrack.kstreams;

import java.math.BigDecimal;
import org.apache.kafka.common.serialization.Serde;

/** The rows of the shop: MySQL's tables, and the views made of them. */
final class Shop {
  private Shop() {}

  record User(long id, String email, int isVip, String createdAt, Long updatedAt) {}

  record Item(
      long id,
      String name,
      String category,
      BigDecimal price,
      int inventory,
      String inventoryUpdatedAt,
      String createdAt,
      Long updatedAt) {}

  record Purchase(
      long id,
      long userId,
      long itemId,
      int status,
      long quantity,
      BigDecimal purchasePrice,
      int deleted,
      String createdAt,
      Long updatedAt) {}

  /** A row of purchases_by_item; there is none without orders. */
  record Sales(long itemId, BigDecimal revenue, long orders, long itemsSold) {
    static final Sales NONE = new Sales(0, BigDecimal.ZERO, 0, 0);

    static Sales plus(long item, Purchase one, Sales sales) {
      return new Sales(
          item,
          sales.revenue.add(one.purchasePrice),
          sales.orders + 1,
          sales.itemsSold + one.quantity);
    }

    static Sales minus(long item, Purchase one, Sales sales) {
      return sales.orders == 1
          ? null
          : new Sales(
              item,
              sales.revenue.subtract(one.purchasePrice),
              sales.orders - 1,
              sales.itemsSold - one.quantity);
    }
  }

  record ItemViews(long itemId, long pageviews) {}

  /** A row of item_summary, and of the two lists of the best. */
  record ItemSummary(
      long itemId,
      String name,
      String category,
      BigDecimal revenue,
      long orders,
      long itemsSold,
      long pageviews,
      Double conversionRate) {

    static ItemSummary of(Item item, Sales sold) {
      Sales sales = sold == null ? Sales.NONE : sold;
      return new ItemSummary(
          item.id,
          item.name,
          item.category,
          sales.revenue,
          sales.orders,
          sales.itemsSold,
          0,
          null);
    }

    ItemSummary with(Long views) {
      long count = views == null ? 0 : views;
      Double rate = count == 0 ? null : (double) orders / count;
      return new ItemSummary(
          itemId, name, category, revenue, orders, itemsSold, count, rate);
    }
  }

  /** What a user has bought; lifetime_value is price times quantity, as the demo has it. */
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
      return one.purchasePrice.multiply(BigDecimal.valueOf(one.quantity));
    }
  }

  record HighValueUser(long id, String email, BigDecimal lifetimeValue, long purchases) {
    static HighValueUser of(Worth worth, User user) {
      String email = user == null ? null : user.email;
      return new HighValueUser(worth.id, email, worth.lifetimeValue, worth.purchases);
    }
  }

  /** What tells a pageview from all others. */
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

  /** A user's; null where there is no such user. */
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
