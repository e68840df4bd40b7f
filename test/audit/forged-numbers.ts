import { agentUsage, edited, exchanged, type Forgery, first, reported } from './forgery.ts';

/** Tokens, cost and times that were changed. */
export const forgedNumbers: Forgery[] = [
  [
    'an exchange that failed, so that its tokens do not count',
    'consistent',
    'count#0 models.exchanges[2].usage',
    (f) =>
      f.editExchange('count#0', (exchange, account) => {
        f.uncount(exchange, account);
        exchange.failure = 'the client ended it';
      }),
  ],
  [
    'an exchange that was refused, so that its tokens do not count',
    'consistent',
    'count#0 models.exchanges[2].usage',
    (f) =>
      f.editExchange('count#0', (exchange, account) => {
        f.uncount(exchange, account);
        exchange.status = 500;
      }),
  ],
  exchanged(
    'an answer that is said to be a recorded one, so that it costs nothing',
    'count#0',
    'models.exchanges[2].replayed',
    (exchange, account) => {
      const sum = first(account.usage).usage;
      sum.costUsd = (sum.costUsd ?? 0) - (exchange.usage.costUsd ?? 0);
      exchange.usage.costUsd = 0;
      exchange.replayed = { of: 'batch_x', trial: 'count #0', number: 3, how: 'exact' };
    },
  ),
  reported('tokens in a report', 'count#0', 'report.usage.totalTokens', ({ usage }) => {
    if (usage) usage.totalTokens = 1;
  }),
  edited('tokens in the sum of a record', 'count#0', 'models.usage[0].usage.inputTokens', (record) => {
    agentUsage(record).inputTokens = 1;
  }),
  exchanged(
    'tokens of an exchange, with its sum',
    'count#0',
    'models.exchanges[2].usage.outputTokens',
    ({ usage }, account) => {
      const less = (usage.outputTokens ?? 0) - 1;
      for (const one of [usage, first(account.usage).usage]) {
        one.outputTokens = (one.outputTokens ?? 0) - (usage === one ? (usage.outputTokens ?? 0) - less : 1);
      }
    },
  ),
  exchanged(
    'the cost of an exchange, with its sum',
    'count#0',
    'models.exchanges[2].usage.costUsd',
    ({ usage }, account) => {
      const sum = first(account.usage).usage;
      sum.costUsd = (sum.costUsd ?? 0) - (usage.costUsd ?? 0);
      usage.costUsd = 0;
    },
  ),
  exchanged(
    'the cost of an exchange whose answer is no longer there, with its sum',
    'count#0',
    'models.exchanges[2].usage.costUsd',
    (exchange, account) => {
      const sum = first(account.usage).usage;
      sum.costUsd = (sum.costUsd ?? 0) - (exchange.usage.costUsd ?? 0);
      exchange.usage.costUsd = 0;
      exchange.requestBody = undefined;
      exchange.responseBody = undefined;
    },
  ),
  exchanged(
    'tokens below zero in an exchange whose answer is no longer there, with its sum',
    'count#0',
    'models.exchanges[2].usage.cacheReadTokens',
    (exchange, account) => {
      const sum = first(account.usage).usage;
      sum.cacheReadTokens = -5 + (sum.cacheReadTokens ?? 0) - (exchange.usage.cacheReadTokens ?? 0);
      exchange.usage.cacheReadTokens = -5;
      exchange.responseBody = undefined;
    },
  ),
  [
    'another price',
    'consistent',
    'count#0 models.exchanges[0].usage.costUsd',
    (f) =>
      f.editPlan(({ variants }) => {
        first(variants).modelConfig = { ...first(variants).modelConfig, prices: { input: 9, output: 9 } };
      }),
  ],
  edited('a request left out of the sum', 'count#0', 'models.usage[0].requests', ({ models }) => {
    first(models?.usage).requests = 1;
  }),
  edited('the time of the model', 'count#0', 'models.modelMs', ({ models }) => {
    if (models) models.modelMs = 0;
  }),
  edited('an earlier end', 'count#0', 'phases[', (record) => {
    record.finishedAt = record.startedAt + 1;
  }),
  edited('a phase that took less than no time', 'count#0', 'phases[1]', ({ phases }) => {
    if (phases[1]) phases[1].durationMs = -5;
  }),
  edited('a phase during another one', 'count#0', 'phases[1]', ({ phases }) => {
    if (phases[0]) phases[0].durationMs += 500;
  }),
  exchanged('an exchange before the trial', 'count#0', 'models.exchanges[2]', (exchange) => {
    exchange.startedAt -= 3_600_000;
  }),
  [
    'an attempt at another time',
    'consistent',
    'count#0 startedAt',
    (f) =>
      void f.database
        .prepare(
          'UPDATE attempts SET started_at = started_at - 9e6, ended_at = ended_at - 9e6 WHERE trial = ?',
        )
        .run(f.row('count#0').key),
  ],
  [
    'tokens in lists',
    'consistent',
    'count#0 listing.totalTokens',
    (f) =>
      void f.database
        .prepare("UPDATE trials SET listing = json_set(listing, '$.totalTokens', 1) WHERE key = ?")
        .run(f.row('count#0').key),
  ],
];
