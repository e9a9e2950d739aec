package systest

// pageSize is the unit in which an operating system writes a file back, so the unit in which a power cut loses it.
const pageSize = 4096

// sectorSize is what a disk writes in one step: a page is torn at its borders.
const sectorSize = 512

// fileSizeMax bounds one file, in bytes: a test that writes at a wild offset gets an error instead of the machine's memory.
const fileSizeMax = 1 << 30

// connBufferBytes is what one direction of a connection holds before its writer waits, like a socket buffer.
const connBufferBytes = 256 << 10

// backlogMax is how many dialled connections wait for Accept; more are refused.
const backlogMax = 1024
