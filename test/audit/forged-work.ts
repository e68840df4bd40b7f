import { edited, exchanged, type Forgery, first } from './forgery.ts';

/** What the agent did, and what it was asked to do, told in another way. */
export const forgedWork: Forgery[] = [
  // What the agent did
  edited('a command left out', 'wrong#0', 'trajectory', (record) => {
    record.trajectory = record.trajectory?.slice(0, 1);
  }),
  edited('a command replaced', 'wrong#0', 'trajectory[1].command', ({ trajectory }) => {
    if (trajectory?.[1]) trajectory[1].command = 'node check.js';
  }),
  [
    'a command in the file of the trajectory',
    'consistent',
    'count#0 .offsite/trajectory.jsonl[0].command',
    (f) => {
      const record = f.record('count#0');
      const file = record.artifacts?.find(({ path }) => path === '.offsite/trajectory.jsonl');
      const text = f
        .blob(file?.sha256 ?? '')
        .toString('utf8')
        .replace('wc -w', 'wc -x');
      const sha256 = f.put(text);
      f.edit('count#0', ({ artifacts }) =>
        Object.assign(artifacts?.find(({ path }) => path === file?.path) ?? {}, { sha256 }),
      );
      f.editReport('count#0', ({ outcome }) =>
        Object.assign(outcome.artifacts?.find(({ path }) => path === file?.path) ?? {}, { sha256 }),
      );
    },
  ],
  edited(
    'a command among those of the traffic',
    'count#0',
    'derivedTrajectory[0].output',
    ({ derivedTrajectory }) => {
      first(derivedTrajectory).output = 'nine';
    },
  ),
  [
    'an answer of the model',
    'consistent',
    'count#0 models.exchanges[2].responseBytes',
    (f) =>
      f.editExchange('count#0', (exchange) => {
        exchange.responseBody = f.put('{}');
      }),
  ],
  [
    'a request to the model',
    'consistent',
    'count#0 derivedTrajectory',
    (f) =>
      f.editExchange('count#0', (exchange, { exchanges }) => {
        const request = f
          .blob(exchange.requestBody ?? '')
          .toString('utf8')
          .replaceAll('wc -w', 'wc -x');
        exchange.requestBody = f.put(request);
        for (const each of exchanges.slice(0, 2)) {
          const body = f
            .blob(each.requestBody ?? '')
            .toString('utf8')
            .replaceAll('wc -w', 'wc -x');
          each.requestBody = f.put(body);
        }
      }),
  ],
  [
    'a file that the agent left',
    'consistent',
    'wrong#0 changes[0] count.txt',
    (f) =>
      f.editAll('wrong#0', ({ changes }) =>
        Object.assign(first(changes).after ?? {}, { content: f.put('9\n') }),
      ),
  ],
  [
    'a workspace swapped in the record',
    'consistent',
    'wrong#0 changes[0] count.txt',
    (f) => {
      const { left } = f.record('count#0');
      f.edit('wrong#0', (record) => {
        record.left = left;
      });
      if (left?.kind === 'archive')
        f.database
          .prepare('UPDATE workspaces SET name = ?, byte_size = ? WHERE trial = ?')
          .run(left.sha256, left.byteSize, f.row('wrong#0').key);
    },
  ],
  // What was asked
  [
    'another name of the variant',
    'consistent',
    'count#0 variant',
    (f) => void f.database.exec("UPDATE runs SET variant = 'a better one' WHERE case_id = 'count'"),
  ],
  edited('another model', 'count#0', 'subject.model', ({ subject }) => {
    if (subject) subject.model = 'a better one';
  }),
  exchanged('another model in an exchange', 'count#0', 'models.exchanges[2].model', (exchange) => {
    exchange.model = 'a better one';
  }),
  exchanged('another model that answered', 'count#0', 'models.exchanges[2].answeredBy', (exchange) => {
    exchange.answeredBy = 'a better one';
  }),
  edited('another prompt', 'count#0', 'subject.prompt', ({ subject }) => {
    if (subject) subject.prompt = 'Be good.';
  }),
  edited('another harness', 'count#0', 'fingerprint.harness', (record) => {
    record.harnessVersion = '99';
  }),
  edited('the digest of an image', 'count#0', 'fingerprint.images', ({ images }) => {
    first(images).digest = `sha256:${'0'.repeat(64)}`;
  }),
  [
    'a loosened validator in the definition',
    'consistent',
    'reply#0 setup.validator.source',
    (f) =>
      f.editPlan(({ cases }) => {
        const validator = cases.find(({ request }) => request.id === 'reply')?.request.validator;
        if (validator) validator.source = validator.source.replace('0.7', '0.1');
      }),
  ],
  [
    'a loosened validator in definition and setup',
    'consistent',
    'reply#0 fingerprint.validator',
    (f) => f.loosen('reply', '0.7', '0.1'),
  ],
];
