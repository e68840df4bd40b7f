/**
 * `npm run -s bench -- NAME [--json] [--quick]`: the measurements, each next to its floor in the same run.
 */
const benches = [
  'attacks',
  'claims',
  'evidence',
  'fleet',
  'gateway',
  'growth',
  'limits',
  'memory',
  'overhead',
  'service',
  'soak',
  'start',
  'view',
];
const [name, ...args] = process.argv.slice(2);

if (name === undefined || !benches.includes(name)) {
  console.error(`Which measurement? ${benches.join(', ')}`);
  process.exitCode = 2;
} else {
  process.argv = [process.argv[0] ?? '', `bench/${name}/main.ts`, ...args];
  await import(`./${name}/main.ts`);
}
