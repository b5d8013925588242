package racetrack.spark;

/** Auctions of category 10 by sellers in three states. */
final class Q3 {
  static final Nexmark.Query QUERY =
      Nexmark.Query.ofAddedRows(
          """
          SELECT P.name, P.city, P.state, A.id
          FROM auction AS A INNER JOIN person AS P ON A.seller = P.id
          WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA')
          """);

  private Q3() {}
}
