// Walks kafkajs through the steps of ../../steps/doc.go.
'use strict'

const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = require('kafkajs')
const snappy = require('snappyjs')
const lz4 = require('lz4js')
const { ZstdCodec } = require('zstd-codec')
const { readFileSync } = require('node:fs')
const readline = require('node:readline')
const { isDeepStrictEqual } = require('node:util')

const brokers = process.argv[2].split(',')
const replicas = Number(process.env.REPLICAS ?? 1)
const STEP_TIME_MAX = 75_000
const LIST_TIME_MAX = 5_000
const GROUP = 'workers'
const ORDERS = 'orders'
const lacks = {
  headers: "kafkajs's headers are a map: values of one name stay together",
  'null-headers': "kafkajs's header values cannot be null",
}
const { WALK_CA, WALK_USER, WALK_PASSWORD } = process.env
const secured = WALK_CA
  ? { ssl: { ca: [readFileSync(WALK_CA)] }, sasl: { mechanism: 'scram-sha-512', username: WALK_USER, password: WALK_PASSWORD } }
  : {}
const kafka = new Kafka({ clientId: 'walk', brokers, logLevel: logLevel.WARN, retry: { retries: 20, maxRetryTime: 1000 }, ...secured })
const admin = kafka.admin()
const producers = {}
let failed = false

// Codecs other than gzip come from other packages.
CompressionCodecs[CompressionTypes.Snappy] = () => ({
  compress: async (encoder) => Buffer.from(snappy.compress(encoder.buffer)),
  decompress: async (buffer) => Buffer.from(snappy.uncompress(buffer)),
})
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async (encoder) => Buffer.from(lz4.compress(encoder.buffer)),
  decompress: async (buffer) => Buffer.from(lz4.decompress(buffer)),
})
const zstd = new Promise((resolve) => ZstdCodec.run((z) => resolve(new z.Simple())))
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async (encoder) => Buffer.from((await zstd).compress(encoder.buffer)),
  decompress: async (buffer) => Buffer.from((await zstd).decompress(buffer)),
})
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const check = (condition, why) => {
  if (!condition) throw new Error(why)
}
const show = (x) => (Buffer.isBuffer(x) ? x.toString('latin1') : JSON.stringify(x))?.slice(0, 60)

async function report(name, step) {
  if (lacks[name]) return console.log(`step ${name} not-offered ${lacks[name]}`)
  const started = Date.now()
  let timer
  const timeout = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('timed out')), STEP_TIME_MAX)
  })
  try {
    await Promise.race([step(), timeout])
    console.log(`step ${name} ok`)
  } catch (e) {
    failed = true
    console.error(e)
    console.log(`step ${name} FAIL ${String(e.message).replaceAll('\n', ' ')}`)
  }
  clearTimeout(timer)
  console.error(`${name} took ${Date.now() - started} ms`)
}

// The records of steps.Samples; headers of one name are a list, and a null one is sent empty.
function samples() {
  const b = (s) => Buffer.from(s, 'latin1')
  return [
    { key: b('k'), value: b('v') },
    { key: null, value: b('v') },
    { key: b(''), value: b('v') },
    { key: b('k'), value: null },
    { key: b('k'), value: b('') },
    { key: b('k'), value: b('v'), headers: { a: [b('1'), b('2')], null: b(''), empty: b('') } },
    { key: b('\x00\xff\n'), value: b('\xff\xfe\x00\n:'), headers: { b: b('\x01\x02\xff') } },
    { key: b('k'), value: b('0123456789abcdef'.repeat(4096)) },
  ]
}

async function produce(topic, codec, messages) {
  if (!producers[codec]) {
    producers[codec] = kafka.producer({ idempotent: true, maxInFlightRequests: 1, allowAutoTopicCreation: false })
    await producers[codec].connect()
  }
  await producers[codec].send({ topic, acks: -1, compression: CODECS[codec], messages: messages.map((m) => ({ partition: 0, ...m })) })
}

// A member of a group; records wait in a queue until they are taken.
class Member {
  constructor(group) {
    this.queue = []
    this.consumer = kafka.consumer({ groupId: group, maxWaitTimeInMs: 200, sessionTimeout: 10_000, heartbeatInterval: 1000 })
  }

  async join(topic) {
    this.topic = topic
    await this.consumer.connect()
    await this.consumer.subscribe({ topics: [topic], fromBeginning: true })
    await this.consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        this.queue.push({ partition, ...message, offset: Number(message.offset) })
      },
    })
    return this
  }

  async take(n) {
    const end = Date.now() + STEP_TIME_MAX
    while (this.queue.length < n) {
      check(Date.now() < end, `${this.queue.length} of ${n} records`)
      await sleep(5)
    }
    return this.queue.splice(0, n)
  }

  commit(offset) {
    return this.consumer.commitOffsets([0, 1].map((partition) => ({ topic: this.topic, partition, offset: String(offset) })))
  }

  close() {
    return this.consumer.disconnect()
  }
}

// kafkajs reads only in groups; one of its own for each reading.
let readings = 0
async function reading(topic, use) {
  const member = await new Member(`reading-${++readings}`).join(topic)
  try {
    return await use(member)
  } finally {
    await member.close()
  }
}

const names = () => [ORDERS, 'times', ...Object.keys(CODECS).map((c) => `codec-${c}`)]

// Of several brokers one may hear of a change some milliseconds after another one has answered it.
async function listed(count) {
  for (const end = Date.now() + LIST_TIME_MAX; ; await sleep(50)) {
    const have = (await admin.listTopics()).filter((n) => names().includes(n))
    if (have.length === count) return
    check(Date.now() < end, `topics listed: ${have}`)
  }
}

async function create() {
  await admin.connect()
  await admin.createTopics({ waitForLeaders: true, topics: names().map((topic) => ({ topic, numPartitions: topic === ORDERS ? 2 : 1, replicationFactor: replicas })) })
  await listed(names().length)
}

const back = {}
async function codec(name) {
  const topic = `codec-${name}`
  await produce(topic, name, samples())
  const got = await reading(topic, (m) => m.take(samples().length))
  got.forEach((r, i) => check(r.offset === i, `record ${i} has offset ${r.offset}`))
  back[name] = got
}

async function same(field) {
  check(Object.keys(back).length > 0, 'nothing was read back')
  for (const [name, got] of Object.entries(back)) {
    samples().forEach((want, i) => {
      check(isDeepStrictEqual(field(got[i]), field(want)), `${name}, record ${i}: ${show(field(got[i]))}, sent ${show(field(want))}`)
    })
  }
}

const produceOrders = (first, end) => {
  const messages = []
  for (let o = first; o < end; o++) for (const partition of [0, 1]) messages.push({ partition, key: `k${partition}`, value: String(o) })
  return produce(ORDERS, 'none', messages)
}

// Reads until both partitions were seen up to end: no hole, and no repeat below repeatFrom.
async function follow(member, seen, end, repeatFrom) {
  while ((seen.end[0] ?? 0) < end || (seen.end[1] ?? 0) < end) {
    const [r] = await member.take(1)
    console.error(`read ${r.partition}/${r.offset}`)
    check(r.value.toString() === String(r.offset), `offset ${r.offset} holds ${r.value}`)
    const at = seen.end[r.partition]
    if (at === undefined) seen.first[r.partition] = r.offset
    else {
      check(r.offset <= at, `partition ${r.partition}: ${r.offset} follows ${at - 1}: records were lost`)
      if (r.offset < at) {
        check(r.offset >= repeatFrom, `partition ${r.partition}: ${r.offset} was read again`)
        continue
      }
    }
    seen.end[r.partition] = r.offset + 1
  }
}

async function joinAt(begin, end) {
  const member = await new Member(GROUP).join(ORDERS)
  const seen = { first: {}, end: {} }
  try {
    await follow(member, seen, end, Infinity)
    check(seen.first[0] === begin && seen.first[1] === begin, `began at ${show(seen.first)}, want ${begin}`)
  } catch (e) {
    await member.close()
    throw e
  }
  return { member, seen }
}

async function checkCommitted(want) {
  const [{ partitions }] = await admin.fetchOffsets({ groupId: GROUP, topics: [ORDERS] })
  partitions.forEach((p) => check(Number(p.offset) === want, `partition ${p.partition}: committed ${p.offset}, want ${want}`))
}

function restart() {
  return new Promise((resolve, reject) => {
    const lines = readline.createInterface({ input: process.stdin })
    lines.once('line', (line) => {
      lines.close()
      line.trim() === 'DONE' ? resolve() : reject(new Error(`the driver answered ${line}`))
    })
    console.log('RESTART')
  })
}

async function group() {
  let member, seen
  await report('group', async () => {
    await produceOrders(0, 10)
    ;({ member, seen } = await joinAt(0, 10))
  })
  await report('commit', async () => {
    await member.commit(5)
    await checkCommitted(5)
  })
  await report('restart-consumer', async () => {
    await member.close()
    ;({ member, seen } = await joinAt(5, 10))
    await member.commit(8)
  })
  let live
  await report('kill-9', async () => {
    await restart()
    await produceOrders(10, 15)
    await follow(member, seen, 15, 8)
    await member.close()
    await reading('codec-zstd', (m) => m.take(samples().length))
    ;({ member: live } = await joinAt(8, 15))
  })
  return live
}

async function groupAdmin(live) {
  await report('describe-group', async () => {
    const { groups } = await admin.describeGroups([GROUP])
    check(groups[0].state === 'Stable' && groups[0].members.length === 1, `state ${groups[0].state} with ${groups[0].members.length} members`)
  })
  await report('reset-group', async () => {
    await live.close()
    await admin.setOffsets({ groupId: GROUP, topic: ORDERS, partitions: [0, 1].map((partition) => ({ partition, offset: '2' })) })
    const { member } = await joinAt(2, 15)
    await member.close()
  })
  await report('delete-group', async () => {
    await admin.deleteGroups([GROUP])
    const { groups } = await admin.listGroups()
    check(!groups.some((g) => g.groupId === GROUP), 'the group is still listed')
  })
}

async function byTime() {
  const base = Date.now() - 3_600_000
  await produce('times', 'none', [0, 1, 2].map((i) => ({ value: 't', timestamp: String(base + i * 1000) })))
  for (const [after, want] of [[-1000, 0], [1, 1], [2000, 2]]) {
    const [p] = await admin.fetchTopicOffsetsByTimestamp('times', base + after)
    check(Number(p.offset) === want, `offset at ${after} ms is ${p.offset}, want ${want}`)
  }
}

async function seek() {
  for (const to of [6, 3]) {
    await reading('codec-none', async (member) => {
      await member.take(samples().length)
      member.consumer.seek({ topic: 'codec-none', partition: 0, offset: String(to) })
      const [r] = await member.take(1)
      check(r.offset === to, `after a seek to ${to} the next record is ${r.offset}`)
    })
  }
}

async function deleteTopics() {
  await admin.deleteTopics({ topics: names() })
  await listed(0)
}

async function main() {
  console.log(`version ${require('kafkajs/package.json').version}`)
  await report('create', create)
  for (const name of Object.keys(CODECS)) await report(name, () => codec(name))
  await report('keys', () => same((r) => r.key))
  await report('values', () => same((r) => r.value))
  await report('headers', () => same((r) => r.headers ?? {}))
  await report('null-headers', () => same((r) => r.headers ?? {}))
  const live = await group()
  await report('by-time', byTime)
  await report('seek', seek)
  await groupAdmin(live)
  await report('delete-topic', deleteTopics)
  process.exit(failed ? 1 : 0)
}

main()
