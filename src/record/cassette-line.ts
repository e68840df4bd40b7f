import { z } from 'zod';
import { WireName } from './wires.ts';

const Text = z
  .int()
  .nonnegative()
  .meta({ description: 'The number of an earlier line of the kind `text`, from 0.' });
const Count = z.int().nonnegative();

const Head = z
  .strictObject({
    cassette: z.literal(1).meta({ description: 'The version of the format.' }),
    of: z.string().meta({ description: 'The batch that was recorded.' }),
    suite: z.string(),
  })
  .meta({ description: 'The first line.' });

const TextLine = z.strictObject({ text: z.string() }).meta({
  description: 'A text that exchanges name by its number. Each text stands in a cassette once.',
});

const TrialLine = z
  .strictObject({
    trial: z.strictObject({ case: z.string(), variant: z.string(), ordinal: Count }),
  })
  .meta({ description: 'A trial that was recorded. The exchanges that follow are its own.' });

const Turn = z.discriminatedUnion('by', [
  z.strictObject({
    by: z.literal('user'),
    said: Text,
    media: z.array(z.string()).meta({ description: 'Hashes of images and documents.' }),
    results: z.array(Text).meta({ description: 'Results of tools, in the order of their calls.' }),
  }),
  z.strictObject({
    by: z.literal('model'),
    text: Text,
    calls: z.array(z.strictObject({ name: z.string(), arguments: Text })),
  }),
]);

const ExchangeLine = z
  .strictObject({
    exchange: z.strictObject({
      number: Count.meta({ description: 'Its place among the exchanges of its trial, from 1.' }),
      role: z.enum(['agent', 'user', 'judge']),
      model: z.string(),
      wire: WireName.meta({ description: 'The wire of the model, and of the answer.' }),
      from: WireName.optional().meta({ description: "The harness's wire, if the request was translated." }),
      context: z.array(Text).meta({ description: 'System texts, and what a harness adds within a tag.' }),
      turns: z.array(Turn),
      tools: z.array(z.strictObject({ name: z.string(), definition: Text })),
      options: Text.meta({ description: 'JSON of the sampling, the choice of tools and the format.' }),
      status: z.int().min(100).max(599),
      answer: Text.meta({ description: 'What the model answered: JSON, or a stream of events.' }),
    }),
  })
  .meta({ description: 'A request to a model without what varies between runs, and its answer.' });
export type ExchangeLine = z.infer<typeof ExchangeLine>;

/** One line of a cassette: JSON Lines, the head first. */
export const CassetteLine = z.union([Head, TextLine, TrialLine, ExchangeLine]);
export type CassetteLine = z.infer<typeof CassetteLine>;
